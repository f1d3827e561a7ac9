"""The filters, tests, functions, and methods of templates, one table each. All other names are rejected."""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import quote

from jinja2.filters import do_default
from jinja2.runtime import LoopContext
from jinja2.tests import TESTS as JINJA_TESTS

from appliance.adapters.mqtt.templates import conversions, operators, texts
from appliance.adapters.mqtt.templates.conversions import UNDEFINED, Undefined
from appliance.adapters.mqtt.templates.operators import COMPARISONS, contains, hashable
from appliance.adapters.mqtt.templates.template_limits import Namespace, Rendering, TemplateFailed, ValueMissing

TemplateFunction = Callable[..., Any]
"""A function of templates. A filter or test gets the rendering and the value. A function gets the rendering and its
arguments."""


def _plain(function: Any) -> TemplateFunction:
    """Wrap a Python function that is always cheap and creates no new value."""
    return lambda run, *given, **named: function(*given, **named)


def _is_defined(run: Rendering, value: Any) -> Any:
    if isinstance(value, Undefined):
        raise ValueMissing("reads a missing value")
    return value


def _selected(*, keeps: bool, by_item: bool) -> TemplateFunction:
    def select(run: Rendering, value: Any, *arguments: Any) -> Any:
        key, arguments = (arguments[0], arguments[1:]) if by_item else (None, arguments)
        test, rest = arguments[:1], arguments[1:]
        matches = named(TESTS, "test", test[0]) if test else lambda run, value: bool(value)
        return run.made([
            each
            for each in run.elements(value or ())
            if bool(matches(run, operators.part(run, each, key) if by_item else each, *rest)) is keeps
        ])  # fmt: skip

    return select


def _map(run: Rendering, value: Any, name: Any = None, *given: Any, attribute: Any = None, default: Any = None,
         **more: Any) -> Any:  # fmt: skip
    values = run.elements(value or ())
    if attribute is not None:
        return run.made([operators.part(run, each, attribute, default) for each in values])
    function = named(FILTERS, "filter", name)
    return run.made([function(run, each, *given, **more) for each in values])


def _join(run: Rendering, value: Any, d: Any = "", attribute: Any = None) -> str:
    return texts.joined(run, value if attribute is None else _map(run, value, attribute=attribute), d)


def _text(change: Callable[[str], Any]) -> TemplateFunction:
    return lambda run, value: run.made(change(run.text(value)))


_BUILTINS = """batch capitalize center dictsort filesizeformat groupby reverse sort striptags title trim
    sum truncate unique urlencode wordcount"""

_MATH: Mapping[str, TemplateFunction] = {
    **{name: conversions.calculated(getattr(math, name))
       for name in ("acos", "asin", "atan", "cos", "sin", "sqrt", "tan")},
    "average": conversions.averaged(statistics.fmean),
    "bitwise_and": conversions.bitwise(operator.and_),
    "bitwise_or": conversions.bitwise(operator.or_),
    "bitwise_xor": conversions.bitwise(operator.xor),
    "clamp": conversions.calculated(lambda value, low, high: max(low, min(high, value)), 3),
    "log": conversions.logarithm,
    "median": conversions.averaged(statistics.median),
    "max": operators.extreme("max"),
    "min": operators.extreme("min"),
}  # fmt: skip

_BOTH: Mapping[str, TemplateFunction] = {
    **_MATH,
    "as_datetime": conversions.as_datetime,
    "as_local": conversions.as_local,
    "as_timestamp": conversions.as_timestamp,
    "bool": conversions.to_bool,
    "combine": operators.combined,
    "difference": operators.united(operator.sub),
    "flatten": operators.flat,
    "float": conversions.to_float,
    "iif": conversions.iif,
    "int": conversions.to_int,
    "intersect": operators.united(operator.and_),
    "is_number": conversions.is_number,
    "slugify": conversions.slug,
    "symmetric_difference": operators.united(operator.xor),
    "today_at": conversions.today_at,
    "typeof": lambda run, value: type(value).__name__,
    "union": operators.united(operator.or_),
}
"""Functions that are also filters."""

FILTERS: Mapping[str, TemplateFunction] = {
    **_BOTH,
    **{name: operators.builtin(name) for name in _BUILTINS.split()},
    "abs": lambda run, value: abs(operators.number(value)),
    "add": conversions.calculated(operator.add, 2),
    "base64_decode": conversions.text_of_base64,
    "base64_encode": conversions.base64_text,
    "contains": lambda run, value, part: contains(run, part, value),
    "count": _plain(len),
    "d": _plain(do_default),
    "default": _plain(do_default),
    "first": lambda run, value: next(run.elements(value), UNDEFINED),
    "format": lambda run, value, *given, **fields: texts.filled(run, run.text(value), fields or given),
    "from_json": conversions.from_json,
    "is_defined": _is_defined,
    "items": operators.items,
    "join": _join,
    "last": lambda run, value: next(reversed(value), UNDEFINED),
    "length": _plain(len),
    "list": lambda run, value: run.made(list(run.elements(value))),
    "lower": _text(str.lower),
    "map": _map,
    "multiply": conversions.calculated(operator.mul, 2),
    "ord": _plain(ord),
    "regex_findall": texts.findall,
    "regex_findall_index": texts.findall_index,
    "regex_match": texts.matches,
    "regex_replace": texts.replace,
    "regex_search": texts.search,
    "reject": _selected(keeps=False, by_item=False),
    "rejectattr": _selected(keeps=False, by_item=True),
    "replace": lambda run, value, old, new, count=None: texts.replaced(run, run.text(value), old, new, count),
    "round": conversions.rounded,
    "safe": lambda run, value: run.text(value),
    "select": _selected(keeps=True, by_item=False),
    "selectattr": _selected(keeps=True, by_item=True),
    "string": lambda run, value: run.text(value),
    "timestamp_custom": conversions.timestamp_custom,
    "timestamp_local": conversions.timestamp_local,
    "timestamp_utc": conversions.timestamp_utc,
    "to_json": conversions.to_json,
    "tojson": conversions.html_safe_json,
    "upper": _text(str.upper),
}

_TESTS = """boolean defined false float integer iterable mapping none number sameas sequence string true
    undefined"""


def _remainder(value: Any, by: Any) -> Any:
    return operators.number(value) % operators.number(by)


TESTS: Mapping[str, TemplateFunction] = {
    **COMPARISONS,
    **{name: COMPARISONS[sign] for sign, names in (
        ("==", "eq equalto"), ("!=", "ne"), ("<", "lt lessthan"), ("<=", "le"), (">", "gt greaterthan"), (">=", "ge"),
    ) for name in names.split()},
    **{name: _plain(JINJA_TESTS[name]) for name in _TESTS.split()},
    "contains": lambda run, value, part: contains(run, part, value),
    "datetime": lambda run, value: isinstance(value, datetime),
    "divisibleby": lambda run, value, by: _remainder(value, by) == 0,
    "even": lambda run, value: _remainder(value, 2) == 0,
    "is_number": conversions.is_number,
    "list": lambda run, value: isinstance(value, list),
    "lower": lambda run, value: run.text(value).islower(),
    "match": texts.matches,
    "odd": lambda run, value: _remainder(value, 2) == 1,
    "search": texts.search,
    "string_like": lambda run, value: isinstance(value, str),
    "tuple": lambda run, value: isinstance(value, tuple),
    "upper": lambda run, value: run.text(value).isupper(),
}  # fmt: skip
"""Tests by name, for use after `is`."""

FUNCTIONS: Mapping[str, TemplateFunction] = {
    **_BOTH,
    "dict": operators.dictionary,
    "namespace": lambda run, **fields: Namespace(fields),
    "now": lambda run: run.now,
    "range": operators.numbers,
    "strptime": conversions.parsed,
    "timedelta": conversions.duration,
    "tuple": lambda run, value: run.made(tuple(run.elements(value))),
    "urlencode": lambda run, value: run.bounded(quote(run.text(value))),
    "utcnow": lambda run: run.now.astimezone(UTC),
    "zip": operators.zipped,
}

CONSTANTS: Mapping[str, Any] = {"e": math.e, "pi": math.pi, "tau": math.tau}

_UNKNOWN_NAMES = ("cycler", "hass", "joiner", "lipsum", "states", "trigger")
"""Names of Home Assistant or Jinja that Lares does not support.

`this` is not in this list, although it is undefined in a template. Announcements use `this.state` to keep an
attribute's value, and an undefined value has the same effect.
"""

_SEQUENCE_METHODS: Mapping[str, TemplateFunction] = {
    "copy": lambda run, values: run.made(values[:]),
    "count": lambda run, values, part: run.weighed(values).count(hashable(part)),
    "index": lambda run, values, part: run.weighed(values).index(hashable(part)),
}

METHODS: Mapping[type, Mapping[str, TemplateFunction]] = {
    str: texts.TEXT_METHODS,
    dict: {
        "copy": lambda run, fields: run.made({**fields}),
        "get": lambda run, fields, key, default=None: fields.get(hashable(key), default),
        "items": operators.items,
        "keys": lambda run, fields: list(run.weighed(fields)),
        "values": lambda run, fields: list(run.weighed(fields).values()),
    },
    list: _SEQUENCE_METHODS,
    tuple: _SEQUENCE_METHODS,
    date: conversions.DATE_METHODS,
    datetime: conversions.DATETIME_METHODS,
    float: {"is_integer": lambda run, value: value.is_integer()},
    timedelta: {"total_seconds": lambda run, value: value.total_seconds()},
    LoopContext: {
        "changed": lambda run, loop, *values: loop.changed(*run.weighed(values)),
        "cycle": lambda run, loop, *values: loop.cycle(*values),
    },
}  # fmt: skip
"""Methods that templates may call on a value, by its type. No other attribute of a Python object is accessible."""


def named(table: Mapping[str, TemplateFunction], kind: str, name: Any) -> TemplateFunction:
    """Return the entry of a table. Raise `TemplateFailed` with kind and name if the name is unknown."""
    if isinstance(name, str) and name in table:
        return table[name]
    raise TemplateFailed(f"uses the unknown {kind} {str(name)[:60]!r}")


def check_name(name: str) -> None:
    """Raise `TemplateFailed` for an unsupported name."""
    if name in _UNKNOWN_NAMES or name in FUNCTIONS:
        raise TemplateFailed(f"uses the unknown name {name!r}")


def _method(name: str) -> TemplateFunction:
    """Return a function that calls this method on any value."""

    def call(run: Rendering, value: Any, *given: Any, **fields: Any) -> Any:
        method = METHODS.get(type(value), {}).get(name)
        if method is None and isinstance(value, Undefined):
            raise ValueMissing(f"calls the method {name} of a missing value")
        if method is None:
            raise TemplateFailed(f"calls {name} on a value of type {type(value).__name__}, which has no such method")
        return method(run, value, *given, **fields)

    return call


METHOD_CALLS: Mapping[str, TemplateFunction] = {name: _method(name) for each in METHODS.values() for name in each}
"""Functions that call a method on any value, by the method's name."""
