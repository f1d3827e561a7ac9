"""Lists, tuples and objects in templates: Jinja's own filters within bounds, and what Home Assistant adds."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any

from appliance.adapters.mqtt.templates.operators import add, environment, hashable, item
from appliance.adapters.mqtt.templates.template_limits import (
    MAX_RENDER_STEPS,
    MAX_WEIGHT,
    UNDEFINED,
    Rendering,
    TemplateFailed,
    Undefined,
    ValueMissing,
)

MAX_BUILTIN_ARGUMENT = 1_000
"""No number that is given to one of Jinja's own filters is larger: widths, and how many parts are made."""

_LISTING = ("batch", "groupby", "sort", "striptags", "title", "unique", "wordcount")
"""Those that take a text apart, and need many times its size for that."""


def items(run: Rendering, value: Any) -> Any:
    """The pairs of an object."""
    return list(run.weighed(value).items()) if isinstance(value, dict) else []


def part(value: Any, path: Any, default: Any = None) -> Any:
    """The part of an element under an index, or under a path such as `a.b.0`; `default` for each that is missing."""
    for key in path.split(".") if isinstance(path, str) else (path,):
        value = item(value, int(key) if str(key).isdecimal() else key)
        value = default if default is not None and isinstance(value, Undefined) else value
    return value


def numbers(run: Rendering, *bounds: Any) -> Any:
    """The whole numbers of a range, as a list."""
    found = range(*bounds)
    if len(found) >= MAX_WEIGHT:
        raise TemplateFailed(f"makes a value of more than {MAX_WEIGHT:,} parts")
    return run.made(list(found))


def zipped(run: Rendering, *values: Any) -> Any:
    """Tuples of the elements of several lists, up to the end of the shortest."""
    return run.made(list(zip(*(list(run.elements(each)) for each in values), strict=False)))


def dictionary(run: Rendering, pairs: Any = (), **fields: Any) -> Any:
    """An object of pairs and named fields."""
    found = dict(run.weighed(pairs))
    for key in found:
        hashable(key)
    return run.made({**found, **fields})


def extreme(name: str) -> Callable[..., Any]:
    """The largest or smallest of a list, or of several values."""
    choose = builtin(name)

    def extreme(run: Rendering, *values: Any, **named: Any) -> Any:
        among = values[0] if len(values) == 1 else values
        if any(isinstance(each, Undefined) for each in run.elements(among)):
            raise ValueMissing("compares with what is not there")
        return choose(run, among, **named)

    return extreme


def builtin(name: str) -> Callable[..., Any]:
    """One of Jinja's own filters, with what it reads and makes charged."""

    def apply(run: Rendering, value: Any, *given: Any, **named: Any) -> Any:
        function: Any = environment().filters[name]
        for each in (*given, *named.values()):
            if isinstance(each, int) and abs(each) > MAX_BUILTIN_ARGUMENT:
                raise TemplateFailed(f"gives {name} a number beyond {MAX_BUILTIN_ARGUMENT:,}")
            run.made(each)
        value = run.made(value) if isinstance(value, list | tuple | dict | int | float | None) else run.text(value)
        if name in _LISTING and isinstance(value, Sized) and len(value) > MAX_RENDER_STEPS:
            raise TemplateFailed(f"takes more than {MAX_RENDER_STEPS:,} steps")
        first = (environment(), value) if getattr(function, "jinja_pass_arg", None) else (value,)
        found = function(*first, *given, **named)
        if isinstance(found, environment().undefined):
            return UNDEFINED
        return run.made(found if isinstance(found, str | int | float | list | tuple | dict | None) else list(found))

    return apply


def combined(run: Rendering, *objects: Any) -> Any:
    """One object of several; the last has its way."""
    return run.made({key: value for each in objects for key, value in run.weighed(each).items()})


def united(work: Callable[[set[Any], set[Any]], set[Any]]) -> Callable[..., Any]:
    """A filter of two lists as sets; the order is that of the lists."""

    def unite(run: Rendering, value: Any, other: Any) -> Any:
        first, second = ({hashable(each) for each in run.elements(values)} for values in (value, other))
        return run.made([each for each in dict.fromkeys([*value, *other]) if each in work(first, second)])

    return unite


def flat(run: Rendering, value: Any, levels: Any = None) -> Any:
    """The elements of a list and of the lists in it, so many levels deep."""
    found: list[Any] = []
    for each in run.elements(run.weighed(value)):
        is_list = isinstance(each, list | tuple) and (levels is None or levels > 0)
        found.extend(flat(run, each, None if levels is None else levels - 1) if is_list else [each])
    return found


def summed(run: Rendering, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    """The sum of the elements, or of a part of each."""
    for each in run.elements(value):
        start = add(run, start, each if attribute is None else part(each, attribute))
    return start
