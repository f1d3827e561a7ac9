"""What templates may do with two values: arithmetic, comparison, joining; bounded, and never a repetition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from appliance.adapters.mqtt.templates.template_limits import (
    MAX_STRING_CHARS,
    Rendering,
    TemplateFailed,
    Undefined,
    ValueMissing,
    checked,
)

Operator = Callable[[Rendering, Any, Any], Any]


def _number(value: Any) -> int | float:
    if isinstance(value, Undefined):
        raise ValueMissing("calculates with what is not there")
    if not isinstance(value, int | float):
        raise TemplateFailed(f"calculates with {type(value).__name__}, not with numbers")
    return value


def _add(run: Rendering, left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        return run.bounded(left + right)
    if isinstance(left, list) and isinstance(right, list):
        run.charge((len(left) + len(right)) // 8)
        return left + right
    if isinstance(left, tuple) and isinstance(right, tuple):
        run.charge((len(left) + len(right)) // 8)
        return left + right
    return checked(_number(left) + _number(right))


def _calculated(work: Callable[[Any, Any], Any]) -> Operator:
    def calculate(run: Rendering, left: Any, right: Any) -> Any:
        return checked(work(_number(left), _number(right)))

    return calculate


def _joined(run: Rendering, left: Any, right: Any) -> Any:
    return run.bounded(run.text(left) + run.text(right))


def _equals(run: Rendering, left: Any, right: Any) -> Any:
    return bool(_weighed(run, left) == right)


def contains(run: Rendering, left: Any, right: Any) -> bool:
    """Whether the left value is an element, key or part of the right one."""
    if isinstance(right, Undefined):
        return False
    if isinstance(right, str):
        return isinstance(left, str) and left in run.bounded(right)
    if isinstance(right, dict):
        return left in right
    return left in run.weigh(right)


def _compared(work: Callable[[Any, Any], Any]) -> Operator:
    def compare(run: Rendering, left: Any, right: Any) -> Any:
        if isinstance(left, Undefined) or isinstance(right, Undefined):
            raise ValueMissing("compares with what is not there")
        return bool(work(_weighed(run, left), right))

    return compare


def _weighed(run: Rendering, value: Any) -> Any:
    return run.weigh(value) if isinstance(value, list | tuple | dict) else value


ARITHMETIC: Mapping[str, Operator] = {
    "+": _add,
    "-": _calculated(lambda left, right: left - right),
    "*": _calculated(lambda left, right: left * right),
    "/": _calculated(lambda left, right: left / right),
    "//": _calculated(lambda left, right: left // right),
    "%": _calculated(lambda left, right: left % right),
    "~": _joined,
}
"""The operators that make a value; `*` and `%` know numbers only, so that no text grows by them."""

COMPARISONS: Mapping[str, Operator] = {
    "==": _equals,
    "!=": lambda run, left, right: not _equals(run, left, right),
    "<": _compared(lambda left, right: left < right),
    "<=": _compared(lambda left, right: left <= right),
    ">": _compared(lambda left, right: left > right),
    ">=": _compared(lambda left, right: left >= right),
    "in": contains,
    "not in": lambda run, left, right: not contains(run, left, right),
}
"""The operators that answer yes or no."""


def replaced(run: Rendering, text: str, old: str, new: str) -> str:
    """The text with every `old` as `new`; refused before it would grow beyond `MAX_STRING_CHARS`."""
    count = text.count(old)
    if len(text) + count * (len(new) - len(old)) > MAX_STRING_CHARS:
        raise TemplateFailed(f"makes a text of more than {MAX_STRING_CHARS // 1024} KiB")
    run.charge(len(text) // 512 + count // 64)
    return text.replace(old, new)
