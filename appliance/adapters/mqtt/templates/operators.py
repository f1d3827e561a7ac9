"""Operations of templates on values: operators, item access, and functions for lists, tuples, and objects."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sized
from datetime import date, timedelta
from typing import Any

from jinja2 import Environment
from jinja2.ext import Extension
from jinja2.runtime import LoopContext

from appliance.adapters.mqtt.templates.conversions import NOT_GIVEN, TIME_FIELDS, UNDEFINED, Undefined, or_default
from appliance.adapters.mqtt.templates.template_limits import (
    MAX_NODES,
    MAX_RENDER_STEPS,
    MAX_STRING_CHARS,
    MAX_WEIGHT,
    Namespace,
    Rendering,
    TemplateFailed,
    ValueMissing,
    weight,
    whole,
)
from appliance.adapters.mqtt.templates.texts import filled

Operator = Callable[[Rendering, Any, Any], Any]
_SEQUENCES = (str, list, tuple)
_TIMES = date | timedelta

_LOOP_FIELDS = frozenset(
    ("index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "previtem", "nextitem")
)


def item(value: Any, key: Any) -> Any:
    """Return the item under a key or index. Raise `ValueMissing` for an undefined value."""
    if isinstance(value, dict):
        return UNDEFINED if isinstance(key, list | tuple | dict) else value.get(key, UNDEFINED)
    if isinstance(value, Undefined):
        part = repr(key[:60]) if isinstance(key, str) else "a part"
        raise ValueMissing(f"reads {part} of a missing value")
    if isinstance(value, list | tuple | str) and isinstance(key, int):
        return value[key] if -len(value) <= key < len(value) else UNDEFINED
    if isinstance(value, Namespace):
        return value.fields.get(key, UNDEFINED) if isinstance(key, str) else UNDEFINED
    is_field = key in TIME_FIELDS.get(type(value), ()) or key in getattr(value, "_fields", ())
    return getattr(value, key) if is_field or (type(value) is LoopContext and key in _LOOP_FIELDS) else UNDEFINED


def hashable(key: Any) -> Any:
    """Return the value unchanged. Raise `TemplateFailed` for a list, tuple, or object, because it cannot be a key."""
    if isinstance(key, list | tuple | dict):
        raise TemplateFailed("uses a list or an object as a key or as a search term")
    return key


def number(value: Any) -> Any:
    """Return a number, point in time, or duration unchanged. Raise `TemplateFailed` for any other value."""
    return value if isinstance(value, int | float | _TIMES) else or_default(value, NOT_GIVEN, "numbers")


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
    """Add two numbers, or concatenate two texts, lists, or tuples."""
    if type(left) is type(right) and isinstance(left, _SEQUENCES):
        if len(left) + len(right) > MAX_STRING_CHARS:
            raise TemplateFailed("creates a value that is too large")
        return run.made(operator.add(left, right))
    return _SUM(run, left, right)


def _multiply(run: Rendering, left: Any, right: Any) -> Any:
    if isinstance(right, _SEQUENCES):
        left, right = right, left
    if not isinstance(left, _SEQUENCES):
        return _PRODUCT(run, left, right)
    if not isinstance(right, int) or (weight(left) + len(left)) * right > MAX_STRING_CHARS:
        raise TemplateFailed("repeats a value too many times")
    return run.made(left * right)


def _modulo(run: Rendering, left: Any, right: Any) -> Any:
    return filled(run, left, right) if isinstance(left, str) else _REMAINDER(run, left, right)


def _power(run: Rendering, left: Any, right: Any) -> Any:
    number(left), number(right)
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() * abs(right) > 128:
        raise TemplateFailed("creates a number that is too large")
    found = left**right
    return whole(found) if isinstance(found, int | float) else UNDEFINED


def _equals(run: Rendering, left: Any, right: Any) -> bool:
    if isinstance(left, str):
        return bool(left == right)
    return bool(run.weighed(left) == right)


def contains(run: Rendering, left: Any, right: Any) -> bool:
    """Return whether the left value is an element, key, or substring of the right value."""
    if isinstance(right, dict):
        return hashable(left) in right
    if isinstance(right, Undefined):
        return False
    if isinstance(right, str):
        if not isinstance(left, str):
            or_default(left, NOT_GIVEN, "a text to search for")
        run.search(right, left)
        return left in right
    if not isinstance(right, list | tuple):
        raise TemplateFailed(f"searches in a value of type {type(right).__name__}, which cannot be searched")
    run.charge(len(right) // 8)
    return hashable(left) in right


def _compared(work: Callable[[Any, Any], Any]) -> Operator:
    return lambda run, left, right: bool(work(run.weighed(left), right))


ARITHMETIC: Mapping[str, Operator] = {
    "Add": add,
    "Sub": _calculated(operator.sub),
    "Mul": _multiply,
    "Div": _calculated(operator.truediv),
    "FloorDiv": _calculated(operator.floordiv),
    "Mod": _modulo,
    "Pow": _power,
}
"""Operators that return a value, by node name."""

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
"""Operators that return true or false, by node name."""

OPERANDS = {"eq": "==", "ne": "!=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">=", "in": "in", "notin": "not in"}
"""Operators by their names in Jinja's parser."""

MAX_TOKENS = 4 * MAX_NODES
"""Maximum number of tokens of a template. Brackets and commas are not nodes, but take time to parse."""


class _Bounded(Extension):
    """Limits the number of tokens while parsing."""

    def filter_stream(self, stream: Any) -> Iterator[Any]:
        for number, token in enumerate(stream):
            if number > MAX_TOKENS:
                raise TemplateFailed(f"has more than {MAX_NODES} parts")
            yield token


class _TemplateParser(Environment):
    """Makes filters access items by the same rules as templates."""

    def getitem(self, obj: Any, argument: Any) -> Any:
        return item(obj, argument)

    def getattr(self, obj: Any, attribute: str) -> Any:
        return item(obj, attribute)


ENVIRONMENT = _TemplateParser(extensions=["jinja2.ext.loopcontrols", _Bounded], undefined=Undefined)
"""Jinja's parser and Jinja's own filters. This environment never compiles or renders a template."""

KEYS_PER_STEP = 16
"""Number of keys of a path that are followed in one step. A path can have any length even for a short text, because
the first element of a character is the character itself."""

MAX_BUILTIN_ARGUMENT = 1_000
"""Maximum number that may be passed to Jinja's own filters, such as a width or a number of items."""

_BY_PATH = ("groupby", "max", "min", "sort", "sum", "unique")
"""Filters that look up an item of each element by one or several paths."""

_LISTING = ("batch", "groupby", "sort", "striptags", "title", "unique", "wordcount")
"""Filters that split a text. The resulting list takes many times the memory of the text."""


def items(run: Rendering, value: Any) -> Any:
    """Return the pairs of key and value of an object."""
    return list(run.weighed(value).items()) if isinstance(value, dict) else []


def part(run: Rendering, value: Any, path: Any, default: Any = None) -> Any:
    """Return the item of an element by an index, or by a path such as `a.b.0`. Return `default` if the item is
    missing."""
    if isinstance(path, str):
        run.charge(path.count(".") // KEYS_PER_STEP)
    for key in path.split(".") if isinstance(path, str) else (path,):
        value = item(value, int(key) if str(key).isdecimal() else key)
        value = default if default is not None and isinstance(value, Undefined) else value
    return value


def numbers(run: Rendering, *bounds: Any) -> Any:
    """Return the integers of a range as a list."""
    found = range(*bounds)
    if len(found) >= MAX_WEIGHT:
        raise TemplateFailed(f"creates a value of more than {MAX_WEIGHT:,} parts")
    return run.made(list(found))


def zipped(run: Rendering, *values: Any) -> Any:
    """Return tuples with one element from each list, up to the end of the shortest list."""
    return run.made(list(zip(*(list(run.elements(each)) for each in values), strict=False)))


def dictionary(run: Rendering, pairs: Any = (), **fields: Any) -> Any:
    """Return an object from pairs and named fields."""
    found = dict(run.weighed(pairs))
    for key in found:
        hashable(key)
    return run.made({**found, **fields})


def extreme(name: str) -> Callable[..., Any]:
    """Return a function for the largest or smallest element of a list, or of several values."""
    choose = builtin(name)

    def extreme(run: Rendering, *values: Any, **named: Any) -> Any:
        return choose(run, list(run.elements(values[0])) if len(values) == 1 else values, **named)

    return extreme


def builtin(name: str) -> Callable[..., Any]:
    """Return one of Jinja's own filters. The cost of the filter's input and output is charged to the rendering."""
    function: Any = ENVIRONMENT.filters[name]

    def apply(run: Rendering, value: Any, *given: Any, **named: Any) -> Any:
        for each in (*given, *named.values()):
            if isinstance(each, int) and abs(each) > MAX_BUILTIN_ARGUMENT:
                raise TemplateFailed(f"passes a number above {MAX_BUILTIN_ARGUMENT:,} to {name}")
            run.made(each)
        value = run.made(value) if isinstance(value, list | tuple | dict | int | float | None) else run.text(value)
        if name in _LISTING and isinstance(value, Sized) and len(value) > MAX_RENDER_STEPS:
            raise TemplateFailed(f"takes more than {MAX_RENDER_STEPS:,} steps")
        if name in _BY_PATH and isinstance(value, Sized):
            keys = sum(
                each.count(".") + each.count(",") for each in (*given, *named.values()) if isinstance(each, str)
            )
            run.charge(len(value) * keys // KEYS_PER_STEP)
        first = (ENVIRONMENT, value) if getattr(function, "jinja_pass_arg", None) else (value,)
        found = function(*first, *given, **named)
        is_value = isinstance(found, str | int | float | list | tuple | dict | Undefined | None)
        return run.made(found if is_value else list(found))

    return apply


def combined(run: Rendering, *objects: Any) -> Any:
    """Merge several objects. For equal keys, the last object wins."""
    return run.made({key: value for each in objects for key, value in run.weighed(each).items()})


def united(work: Callable[[set[Any], set[Any]], set[Any]]) -> Callable[..., Any]:
    """Return a filter that treats two lists as sets. The result has the order of the lists."""

    def unite(run: Rendering, value: Any, other: Any) -> Any:
        first, second = ({hashable(each) for each in run.elements(values)} for values in (value, other))
        chosen = work(first, second)
        return run.made([each for each in dict.fromkeys([*value, *other]) if each in chosen])

    return unite


def flat(run: Rendering, value: Any, levels: Any = None) -> Any:
    """Flatten the lists inside a list, down to this number of levels."""
    found: list[Any] = []
    for each in run.elements(run.weighed(value)):
        is_list = isinstance(each, list | tuple) and (levels is None or levels > 0)
        found.extend(flat(run, each, None if levels is None else levels - 1) if is_list else [each])
    return found
