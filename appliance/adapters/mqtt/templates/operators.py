"""What templates may do with two values, and how they reach the parts of one."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from appliance.adapters.mqtt.templates.template_limits import (
    MAX_NODES,
    MAX_STRING_CHARS,
    UNDEFINED,
    Namespace,
    Rendering,
    TemplateFailed,
    Undefined,
    ValueMissing,
    weight,
    whole,
)
from appliance.adapters.mqtt.templates.texts import filled
from appliance.adapters.mqtt.templates.times import TIME_FIELDS

Operator = Callable[[Rendering, Any, Any], Any]
_SEQUENCES = (str, list, tuple)
_TIMES = datetime | timedelta


def item(value: Any, key: Any) -> Any:
    """The part of an object, list, text or time under a key or index; `ValueMissing` for an undefined value."""
    if isinstance(value, dict):
        return UNDEFINED if isinstance(key, list | tuple | dict) else value.get(key, UNDEFINED)
    if isinstance(value, Undefined):
        raise ValueMissing(f"looks for {key[:60] if isinstance(key, str) else 'a part'!r} in what is not there")
    if isinstance(value, list | tuple | str) and isinstance(key, int):
        return value[key] if -len(value) <= key < len(value) else UNDEFINED
    if isinstance(value, Namespace):
        return value.fields.get(key, UNDEFINED) if isinstance(key, str) else UNDEFINED
    if key in TIME_FIELDS.get(type(value), ()) or key in getattr(value, "_fields", ()):
        return getattr(value, key)
    return UNDEFINED


def hashable(key: Any) -> Any:
    """The key or needle; a list, tuple or object can be neither."""
    if isinstance(key, list | tuple | dict):
        raise TemplateFailed("a list or object can be no key, and not be looked for")
    return key


def number(value: Any) -> Any:
    """The number, point in time or duration; `TemplateFailed` for anything else."""
    if isinstance(value, Undefined):
        raise ValueMissing("calculates with what is not there")
    if not isinstance(value, int | float | _TIMES):
        raise TemplateFailed(f"calculates with {type(value).__name__}, not with numbers")
    return value


def _calculated(work: Callable[[Any, Any], Any]) -> Operator:
    def calculate(run: Rendering, left: Any, right: Any) -> Any:
        if type(left) is not int and type(left) is not float:
            number(left)
        if type(right) is not int and type(right) is not float:
            number(right)
        return whole(work(left, right))

    return calculate


_SUM, _PRODUCT, _REMAINDER = (_calculated(each) for each in (operator.add, operator.mul, operator.mod))


def add(run: Rendering, left: Any, right: Any) -> Any:
    """The sum of two numbers, or two texts, lists or tuples one after the other."""
    if type(left) is type(right) and isinstance(left, _SEQUENCES):
        if len(left) + len(right) > MAX_STRING_CHARS:
            raise TemplateFailed("makes a value that is too large")
        return run.made(operator.add(left, right))
    return _SUM(run, left, right)


def _multiply(run: Rendering, left: Any, right: Any) -> Any:
    if isinstance(right, _SEQUENCES):
        left, right = right, left
    if not isinstance(left, _SEQUENCES):
        return _PRODUCT(run, left, right)
    if not isinstance(right, int) or (weight(left) + len(left)) * right > MAX_STRING_CHARS:
        raise TemplateFailed("repeats a value too often")
    return run.made(left * right)


def _modulo(run: Rendering, left: Any, right: Any) -> Any:
    return filled(run, left, right) if isinstance(left, str) else _REMAINDER(run, left, right)


def _power(run: Rendering, left: Any, right: Any) -> Any:
    number(left), number(right)
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() * abs(right) > 128:
        raise TemplateFailed("makes a number that is too large")
    found = left**right
    return whole(found) if isinstance(found, int | float) else UNDEFINED


def _equals(run: Rendering, left: Any, right: Any) -> bool:
    if isinstance(left, str):
        return bool(left == right)
    return bool(run.weighed(left) == right)


def contains(run: Rendering, left: Any, right: Any) -> bool:
    """Whether the left value is an element, key or part of the right one; a list, tuple or object can be none."""
    if isinstance(right, dict):
        return hashable(left) in right
    if isinstance(right, Undefined):
        return False
    if isinstance(right, str):
        if isinstance(left, Undefined):
            raise ValueMissing("looks for what is not there")
        if not isinstance(left, str):
            raise TemplateFailed(f"looks for {type(left).__name__} in a text")
        run.search(right, left)
        return left in right
    if not isinstance(right, list | tuple):
        raise TemplateFailed(f"looks for something in {type(right).__name__}")
    run.charge(len(right) // 8)
    return hashable(left) in right


def _compared(work: Callable[[Any, Any], Any]) -> Operator:
    def compare(run: Rendering, left: Any, right: Any) -> bool:
        if isinstance(left, Undefined) or isinstance(right, Undefined):
            raise ValueMissing("compares with what is not there")
        return bool(work(run.weighed(left), right))

    return compare


ARITHMETIC: Mapping[str, Operator] = {
    "Add": add,
    "Sub": _calculated(operator.sub),
    "Mul": _multiply,
    "Div": _calculated(operator.truediv),
    "FloorDiv": _calculated(operator.floordiv),
    "Mod": _modulo,
    "Pow": _power,
}
"""The operators that make a value, by the names of their nodes."""

COMPARISONS: Mapping[str, Operator] = {
    "==": _equals,
    "!=": lambda run, left, right: not _equals(run, left, right),
    "<": _compared(operator.lt),
    "<=": _compared(operator.le),
    ">": _compared(operator.gt),
    ">=": _compared(operator.ge),
    "in": contains,
    "not in": lambda run, left, right: not contains(run, left, right),
}
"""The operators that answer yes or no."""

OPERANDS = {"eq": "==", "ne": "!=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">=", "in": "in", "notin": "not in"}
"""The operators by the names that Jinja's parser gives them."""


MAX_TOKENS = 4 * MAX_NODES
"""Tokens of a template: brackets and commas are no nodes, and reading them takes time."""


@functools.cache
def environment() -> Any:
    """Jinja's parser and own filters, imported when the first template is met. It compiles and renders nothing."""
    from jinja2 import Environment
    from jinja2.ext import Extension

    class Bounded(Extension):
        """Counts the tokens while they are read."""

        def filter_stream(self, stream: Any) -> Iterator[Any]:
            for number, token in enumerate(stream):
                if number > MAX_TOKENS:
                    raise TemplateFailed(f"has more than {MAX_NODES} parts")
                yield token

    class Parser(Environment):
        """Its own filters reach the parts of values as templates do."""

        def getitem(self, obj: Any, argument: Any) -> Any:
            return item(obj, argument)

        def getattr(self, obj: Any, attribute: str) -> Any:
            return item(obj, attribute)

    return Parser(extensions=["jinja2.ext.loopcontrols", Bounded])
