"""The filters, tests, functions and methods that templates may use, one table each; what is in none is refused."""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from appliance.adapters.mqtt.templates import conversions, operators, sequences, texts, times
from appliance.adapters.mqtt.templates.operators import COMPARISONS, contains, hashable
from appliance.adapters.mqtt.templates.template_limits import (
    UNDEFINED,
    Loop,
    Namespace,
    Rendering,
    TemplateFailed,
    Undefined,
    ValueMissing,
)

TemplateFunction = Callable[..., Any]
"""A filter or test takes the rendering and the value first, a function the rendering, then arguments."""


def _default(run: Rendering, value: Any, default_value: Any = "", boolean: Any = False) -> Any:
    return default_value if isinstance(value, Undefined) or (boolean and not value) else value


def _is_defined(run: Rendering, value: Any) -> Any:
    if isinstance(value, Undefined):
        raise ValueMissing("asks for what is not there")
    return value


def _length(run: Rendering, value: Any) -> Any:
    return 0 if isinstance(value, Undefined) else len(value)


def _last(run: Rendering, value: Any) -> Any:
    return UNDEFINED if isinstance(value, Undefined) else next(reversed(value), UNDEFINED)


def _selected(*, keeps: bool, by_item: bool) -> TemplateFunction:
    def select(run: Rendering, value: Any, *arguments: Any) -> Any:
        key, arguments = (arguments[0], arguments[1:]) if by_item else (None, arguments)
        test, rest = arguments[:1], arguments[1:]
        matches = named(TESTS, "test", test[0]) if test else lambda run, value: bool(value)
        return run.made([
            each
            for each in run.elements(value or ())
            if bool(matches(run, sequences.part(each, key) if by_item else each, *rest)) is keeps
        ])  # fmt: skip

    return select


def _map(run: Rendering, value: Any, name: Any = None, *given: Any, attribute: Any = None, default: Any = None,
         **more: Any) -> Any:  # fmt: skip
    values = run.elements(value or ())
    if attribute is not None:
        return run.made([sequences.part(each, attribute, default) for each in values])
    function = named(FILTERS, "filter", name)
    return run.made([function(run, each, *given, **more) for each in values])


def _join(run: Rendering, value: Any, d: Any = "", attribute: Any = None) -> str:
    return texts.joined(run, value if attribute is None else _map(run, value, attribute=attribute), d)


def _text(change: Callable[[str], Any]) -> TemplateFunction:
    return lambda run, value: run.made(change(run.text(value)))


def _namespace(run: Rendering, **fields: Any) -> Namespace:
    return Namespace(fields)


_BUILTINS = """batch capitalize center dictsort filesizeformat groupby reverse sort striptags title trim
    truncate unique urlencode wordcount"""

_MATH: Mapping[str, TemplateFunction] = {
    **{name: conversions.calculated(getattr(math, name))
       for name in ("acos", "asin", "atan", "cos", "sin", "sqrt", "tan")},
    "average": conversions.averaged(statistics.fmean),
    "bitwise_and": conversions.bitwise(operator.and_),
    "bitwise_or": conversions.bitwise(operator.or_),
    "bitwise_xor": conversions.bitwise(operator.xor),
    "clamp": conversions.clamped,
    "log": conversions.logarithm,
    "median": conversions.averaged(statistics.median),
    "max": sequences.extreme("max"),
    "min": sequences.extreme("min"),
}  # fmt: skip

_BOTH: Mapping[str, TemplateFunction] = {
    **_MATH,
    "as_datetime": times.as_datetime,
    "as_local": times.as_local,
    "as_timestamp": times.as_timestamp,
    "bool": conversions.to_bool,
    "combine": sequences.combined,
    "difference": sequences.united(operator.sub),
    "flatten": sequences.flat,
    "float": conversions.to_float,
    "iif": conversions.iif,
    "int": conversions.to_int,
    "intersect": sequences.united(operator.and_),
    "is_number": conversions.is_number,
    "slugify": conversions.slug,
    "symmetric_difference": sequences.united(operator.xor),
    "today_at": times.today_at,
    "typeof": lambda run, value: type(value).__name__,
    "union": sequences.united(operator.or_),
}
"""What may be called by name and stand behind `|` too."""

FILTERS: Mapping[str, TemplateFunction] = {
    **_BOTH,
    **{name: sequences.builtin(name) for name in _BUILTINS.split()},
    "abs": lambda run, value: abs(operators.number(value)),
    "add": conversions.added,
    "base64_decode": conversions.text_of_base64,
    "base64_encode": conversions.base64_text,
    "contains": lambda run, value, part: contains(run, part, value),
    "count": _length,
    "d": _default,
    "default": _default,
    "first": lambda run, value: next(run.elements(value), UNDEFINED),
    "format": lambda run, value, *given, **fields: texts.filled(run, run.text(value), fields or given),
    "from_json": conversions.from_json,
    "is_defined": _is_defined,
    "items": sequences.items,
    "join": _join,
    "last": _last,
    "length": _length,
    "list": lambda run, value: run.made(list(run.elements(value))),
    "lower": _text(str.lower),
    "map": _map,
    "multiply": conversions.multiplied,
    "ord": lambda run, value: ord(value),
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
    "sum": sequences.summed,
    "timestamp_custom": times.timestamp_custom,
    "timestamp_local": times.timestamp_local,
    "timestamp_utc": times.timestamp_utc,
    "to_json": conversions.to_json,
    "tojson": conversions.html_safe_json,
    "upper": _text(str.upper),
}
"""What may stand behind `|`."""


def _remainder(run: Rendering, value: Any, by: Any) -> int:
    return operators.number(value) % operators.number(by)  # type: ignore[no-any-return]


TESTS: Mapping[str, TemplateFunction] = {
    **COMPARISONS,
    "boolean": lambda run, value: isinstance(value, bool),
    "contains": lambda run, value, part: contains(run, part, value),
    "datetime": lambda run, value: isinstance(value, datetime),
    "defined": lambda run, value: not isinstance(value, Undefined),
    "divisibleby": lambda run, value, by: _remainder(run, value, by) == 0,
    "eq": COMPARISONS["=="],
    "equalto": COMPARISONS["=="],
    "even": lambda run, value: _remainder(run, value, 2) == 0,
    "false": lambda run, value: value is False,
    "float": lambda run, value: isinstance(value, float),
    "ge": COMPARISONS[">="],
    "greaterthan": COMPARISONS[">"],
    "gt": COMPARISONS[">"],
    "integer": lambda run, value: isinstance(value, int) and not isinstance(value, bool),
    "is_number": conversions.is_number,
    "iterable": lambda run, value: isinstance(value, str | list | tuple | dict | Undefined),
    "le": COMPARISONS["<="],
    "lessthan": COMPARISONS["<"],
    "list": lambda run, value: isinstance(value, list),
    "lower": lambda run, value: run.text(value).islower(),
    "lt": COMPARISONS["<"],
    "mapping": lambda run, value: isinstance(value, dict),
    "match": texts.matches,
    "ne": COMPARISONS["!="],
    "none": lambda run, value: value is None,
    "number": lambda run, value: isinstance(value, int | float),
    "odd": lambda run, value: _remainder(run, value, 2) == 1,
    "sameas": lambda run, value, other: value is other,
    "search": texts.search,
    "sequence": lambda run, value: isinstance(value, str | list | tuple | dict | Undefined),
    "string": lambda run, value: isinstance(value, str),
    "string_like": lambda run, value: isinstance(value, str),
    "true": lambda run, value: value is True,
    "tuple": lambda run, value: isinstance(value, tuple),
    "undefined": lambda run, value: isinstance(value, Undefined),
    "upper": lambda run, value: run.text(value).isupper(),
}
"""What may stand behind `is`."""

FUNCTIONS: Mapping[str, TemplateFunction] = {
    **_BOTH,
    "dict": sequences.dictionary,
    "namespace": _namespace,
    "now": lambda run: run.now,
    "range": sequences.numbers,
    "strptime": times.parsed,
    "timedelta": times.duration,
    "tuple": lambda run, value: run.made(tuple(run.elements(value))),
    "urlencode": lambda run, value: run.bounded(quote(run.text(value))),
    "utcnow": lambda run: run.now.astimezone(UTC),
    "zip": sequences.zipped,
}
"""What may be called by name."""

CONSTANTS: Mapping[str, Any] = {"e": math.e, "pi": math.pi, "tau": math.tau}

_UNKNOWN_NAMES = ("cycler", "hass", "joiner", "lipsum", "states", "trigger")
"""Names that Home Assistant or Jinja knows and that are not offered here. `this` is undefined: announcers ask for
`this.state` where the value is to stay as it was, and so it does.
"""


def _changed(run: Rendering, loop: Loop, *values: Any) -> bool:
    is_new = bool(loop.fields.get("") != run.weighed(values))
    loop.fields[""] = values
    return is_new


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
        "items": sequences.items,
        "keys": lambda run, fields: list(run.weighed(fields)),
        "values": lambda run, fields: list(run.weighed(fields).values()),
    },
    list: _SEQUENCE_METHODS,
    tuple: _SEQUENCE_METHODS,
    datetime: times.DATETIME_METHODS,
    float: {"is_integer": lambda run, value: value.is_integer()},
    timedelta: {"total_seconds": lambda run, value: value.total_seconds()},
    Loop: {"changed": _changed, "cycle": lambda run, loop, *values: values[loop.fields["index0"] % len(values)]},
}  # fmt: skip
"""The methods that may be called on a value of a type; nothing else of Python's can be reached."""

_METHOD_NAMES = frozenset(name for methods in METHODS.values() for name in methods)


def named(table: Mapping[str, TemplateFunction], kind: str, name: Any) -> TemplateFunction:
    """The entry of a table; `TemplateFailed` with the kind and the name for what is not offered."""
    if isinstance(name, str) and name in table:
        return table[name]
    raise TemplateFailed(f"the {kind} {str(name)[:60]!r} is not known")


def check_name(name: str) -> None:
    """Raise `TemplateFailed` for a name that only another hub knows."""
    if name in _UNKNOWN_NAMES or name in FUNCTIONS:
        raise TemplateFailed(f"the name {name!r} is not known")


def method_of(name: str) -> TemplateFunction:
    """The method of that name, of whatever value it is called; `TemplateFailed` for a name that no value has."""
    if name not in _METHOD_NAMES:
        raise TemplateFailed(f"the method {name!r} is not known")

    def call(run: Rendering, value: Any, *given: Any, **fields: Any) -> Any:
        if isinstance(value, Undefined):
            raise ValueMissing(f"calls {name} of what is not there")
        method = METHODS.get(type(value), {}).get(name)
        if method is None:
            raise TemplateFailed(f"calls {name} of {type(value).__name__}, which has none")
        return method(run, value, *given, **fields)

    return call
