"""The filters, tests and functions that templates may use, one table each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from appliance.adapters.mqtt.templates import patterns
from appliance.adapters.mqtt.templates.conversions import (
    as_timestamp,
    html_safe_json,
    is_number,
    multiplied,
    rounded,
    timestamp_text,
    to_bool,
    to_float,
    to_int,
    to_json,
)
from appliance.adapters.mqtt.templates.operators import COMPARISONS, contains, replaced
from appliance.adapters.mqtt.templates.template_limits import (
    MAX_STRING_CHARS,
    UNDEFINED,
    Namespace,
    Rendering,
    TemplateFailed,
    Undefined,
    ValueMissing,
)

TemplateFunction = Callable[..., Any]
"""A filter or test takes the rendering and the value first, a function the rendering, then arguments."""


def _default(run: Rendering, value: Any, default: Any = "", boolean: Any = False) -> Any:
    return default if isinstance(value, Undefined) or (boolean and not value) else value


def _is_defined(run: Rendering, value: Any) -> Any:
    if isinstance(value, Undefined):
        raise ValueMissing("asks for what is not there")
    return value


def _truncate(
    run: Rendering, value: Any, length: Any = 255, killwords: Any = False, end: Any = "...", leeway: Any = 5
) -> Any:
    text, limit, tail = run.text(value), int(length), run.text(end)
    if len(text) <= limit + int(5 if leeway is None else leeway):
        return text
    cut = text[: max(limit - len(tail), 0)]
    return (cut if killwords else cut.rsplit(" ", 1)[0]) + tail


def _most(choose: Callable[[list[Any]], Any]) -> TemplateFunction:
    def most(run: Rendering, *values: Any) -> Any:
        among = list(run.elements(values[0])) if len(values) == 1 else list(values)
        if not among or any(isinstance(each, Undefined) for each in among):
            return UNDEFINED if not among else _is_defined(run, UNDEFINED)
        return choose(among)

    return most


def _join(run: Rendering, value: Any, between: Any = "") -> Any:
    texts, length = [], 0
    for each in run.elements(value):
        texts.append(run.text(each))
        length += len(texts[-1]) + len(between)
        if length > MAX_STRING_CHARS:
            raise TemplateFailed(f"makes a text of more than {MAX_STRING_CHARS // 1024} KiB")
    return run.bounded(run.text(between).join(texts))


def _replace(run: Rendering, value: Any, old: Any, new: Any) -> Any:
    return replaced(run, run.text(value), run.text(old), run.text(new))


def _items(run: Rendering, value: Any) -> Any:
    return list(run.weigh(value).items()) if isinstance(value, dict) else []


def _length(run: Rendering, value: Any) -> Any:
    return 0 if isinstance(value, Undefined) else len(value)


def _first(run: Rendering, value: Any) -> Any:
    return next(run.elements(value), UNDEFINED)


def _last(run: Rendering, value: Any) -> Any:
    return value[-1] if isinstance(value, str | list | tuple) and value else UNDEFINED


def _findall(run: Rendering, value: Any, pattern: Any = "", ignorecase: Any = False) -> Any:
    return patterns.compiled(pattern, run).findall(patterns.subject(value))


def _regex_replace(run: Rendering, value: Any, pattern: Any = "", new: Any = "", ignorecase: Any = False) -> Any:
    return run.bounded(patterns.compiled(pattern, run).sub(run.text(new)[:256], patterns.subject(value)))


def _item(value: Any, key: Any) -> Any:
    try:
        return value[key]
    except (LookupError, TypeError):
        return UNDEFINED


def _selected(*, keeps: bool, by_item: bool) -> TemplateFunction:
    def select(run: Rendering, value: Any, *arguments: Any) -> Any:
        key, arguments = (arguments[0], arguments[1:]) if by_item else (None, arguments)
        test, rest = arguments[:1], arguments[1:]
        matches = TESTS[test[0]] if test else lambda run, value: bool(value)
        return [
            each
            for each in run.elements(value)
            if bool(matches(run, _item(each, key) if by_item else each, *rest)) is keeps
        ]

    return select


def _map(run: Rendering, value: Any, name: Any = None, *arguments: Any, attribute: Any = None) -> Any:
    if attribute is not None:
        return [_item(each, attribute) for each in run.elements(value)]
    return [FILTERS[name](run, each, *arguments) for each in run.elements(value)]


def _range(run: Rendering, *bounds: Any) -> Any:
    numbers = range(*bounds)
    run.charge(min(10000, len(numbers)))
    return list(numbers)


def _zip(run: Rendering, *values: Any) -> Any:
    return list(zip(*(list(run.elements(each)) for each in values), strict=False))


def _dict(run: Rendering, pairs: Any = (), **fields: Any) -> Any:
    return {**dict(run.weigh(pairs)), **fields}


def _text(change: Callable[[str], Any]) -> TemplateFunction:
    return lambda run, value: change(run.text(value))


FILTERS: Mapping[str, TemplateFunction] = {
    "abs": lambda run, value: abs(to_float(run, value) if isinstance(value, str | Undefined) else value),
    "as_timestamp": as_timestamp,
    "bool": to_bool,
    "count": _length,
    "d": _default,
    "default": _default,
    "first": _first,
    "float": to_float,
    "int": to_int,
    "is_defined": _is_defined,
    "is_number": is_number,
    "items": _items,
    "join": _join,
    "last": _last,
    "length": _length,
    "list": lambda run, value: list(run.elements(value)),
    "lower": _text(str.lower),
    "map": _map,
    "max": _most(max),
    "min": _most(min),
    "multiply": multiplied,
    "regex_findall": _findall,
    "regex_replace": _regex_replace,
    "reject": _selected(keeps=False, by_item=False),
    "rejectattr": _selected(keeps=False, by_item=True),
    "replace": _replace,
    "round": rounded,
    "select": _selected(keeps=True, by_item=False),
    "selectattr": _selected(keeps=True, by_item=True),
    "string": lambda run, value: run.text(value),
    "timestamp_local": timestamp_text,
    "timestamp_utc": timestamp_text,
    "title": _text(str.title),
    "to_json": to_json,
    "tojson": html_safe_json,
    "trim": _text(str.strip),
    "truncate": _truncate,
    "upper": _text(str.upper),
}
"""What may stand behind `|`."""

TESTS: Mapping[str, TemplateFunction] = {
    "boolean": lambda run, value: isinstance(value, bool),
    "defined": lambda run, value: not isinstance(value, Undefined),
    "eq": COMPARISONS["=="],
    "equalto": COMPARISONS["=="],
    "ge": COMPARISONS[">="],
    "gt": COMPARISONS[">"],
    "in": contains,
    "is_number": is_number,
    "le": COMPARISONS["<="],
    "lt": COMPARISONS["<"],
    "mapping": lambda run, value: isinstance(value, dict),
    "ne": COMPARISONS["!="],
    "none": lambda run, value: value is None,
    "number": lambda run, value: isinstance(value, int | float),
    "sequence": lambda run, value: isinstance(value, str | list | tuple | dict),
    "string": lambda run, value: isinstance(value, str),
    "undefined": lambda run, value: isinstance(value, Undefined),
}
"""What may stand behind `is`."""

FUNCTIONS: Mapping[str, TemplateFunction] = {
    "as_timestamp": as_timestamp,
    "dict": _dict,
    "dict.from_keys": _dict,
    "float": to_float,
    "int": to_int,
    "is_number": is_number,
    "max": _most(max),
    "min": _most(min),
    "namespace": lambda run, **fields: Namespace(fields),
    "now": lambda run: run.now,
    "range": _range,
    "utcnow": lambda run: run.now,
    "zip": _zip,
}
"""What may be called by name."""


def _split(run: Rendering, text: str, by: Any = None, most: Any = -1) -> Any:
    found = text.split(by, most)
    run.charge(len(found) // 8)
    return found


METHODS: Mapping[type, Mapping[str, TemplateFunction]] = {
    str: {
        "endswith": lambda run, text, end: text.endswith(end),
        "lower": lambda run, text: text.lower(),
        "lstrip": lambda run, text, chars=None: text.lstrip(chars),
        "replace": replaced,
        "rstrip": lambda run, text, chars=None: text.rstrip(chars),
        "split": _split,
        "startswith": lambda run, text, start: text.startswith(start),
        "strip": lambda run, text, chars=None: text.strip(chars),
        "title": lambda run, text: text.title(),
        "upper": lambda run, text: text.upper(),
    },
    dict: {
        "get": lambda run, fields, key, default=None: fields.get(key, default),
        "items": _items,
        "keys": lambda run, fields: list(run.weigh(fields)),
        "values": lambda run, fields: list(run.weigh(fields).values()),
    },
}
"""The methods that may be called on a text or an object; nothing else of Python's can be reached."""
