"""The parts of an expression, compiled to functions of the rendering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from appliance.adapters.mqtt.templates.filters import METHODS
from appliance.adapters.mqtt.templates.operators import Operator
from appliance.adapters.mqtt.templates.template_limits import (
    UNDEFINED,
    Namespace,
    Rendering,
    TemplateFailed,
    Undefined,
    ValueMissing,
)

Expression = Callable[[Rendering], Any]
Step = Callable[[Rendering, Any], Any]
Arguments = tuple[list[Expression], dict[str, Expression]]


def item(value: Any, key: Any) -> Any:
    """The element of an object, list or text under a key or index; raises `ValueMissing` for an undefined value."""
    if isinstance(value, Undefined):
        raise ValueMissing(f"looks for {str(key)[:60]!r} in what is not there")
    if isinstance(value, Namespace):
        return value.fields.get(key, UNDEFINED)
    if isinstance(value, dict):
        return value.get(key, UNDEFINED) if key.__hash__ is not None else UNDEFINED
    if isinstance(value, list | tuple | str) and isinstance(key, int):
        return value[key] if -len(value) <= key < len(value) else UNDEFINED
    return UNDEFINED


def constant(value: Any) -> Expression:
    """Always this value."""
    return lambda run: value


def sequence(items: list[Expression], make: Callable[[list[Any]], Any]) -> Expression:
    """The values of the items, as a list or tuple."""
    return lambda run: make([each(run) for each in items])


def choice(condition: Expression, then: Expression, otherwise: Expression) -> Expression:
    """One of two expressions."""

    def choose(run: Rendering) -> Any:
        run.charge()
        return then(run) if condition(run) else otherwise(run)

    return choose


def first_that(parts: list[Expression], *, counts_as: bool) -> Expression:
    """The first value that counts as true or false, else the last: what `or` and `and` give."""

    def search(run: Rendering) -> Any:
        value = None
        for part in parts:
            run.charge()
            value = part(run)
            if bool(value) is counts_as:
                break
        return value

    return search


def calculation(first: Expression, others: list[tuple[Operator, Expression]]) -> Expression:
    """One operator after another, from the left."""

    def calculate(run: Rendering) -> Any:
        value = first(run)
        for operator, other in others:
            run.charge()
            value = operator(run, value, other(run))
        return value

    return calculate


def comparison(first: Expression, others: list[tuple[Operator, Expression]]) -> Expression:
    """Comparisons that must all hold, as in `1 < x < 5`."""

    def compare(run: Rendering) -> Any:
        left = first(run)
        for operator, other in others:
            run.charge()
            right = other(run)
            if not operator(run, left, right):
                return False
            left = right
        return True

    return compare


def chain(value: Expression, steps: list[Step]) -> Expression:
    """A value and what is done to it, step by step."""

    def follow(run: Rendering) -> Any:
        found = value(run)
        for step in steps:
            run.charge()
            found = step(run, found)
        return found

    return follow


def _evaluated(run: Rendering, arguments: Arguments) -> tuple[list[Any], dict[str, Any]]:
    given, named = arguments
    return [each(run) for each in given], {name: each(run) for name, each in named.items()}


def call(function: Callable[..., Any], arguments: Arguments) -> Expression:
    """A function called by its name."""

    def call_function(run: Rendering) -> Any:
        run.charge()
        given, named = _evaluated(run, arguments)
        return function(run, *given, **named)

    return call_function


def application(function: Callable[..., Any], arguments: Arguments) -> Step:
    """A filter or test with its arguments."""

    def apply(run: Rendering, value: Any) -> Any:
        given, named = _evaluated(run, arguments)
        return function(run, value, *given, **named)

    return apply


def method_call(name: str, arguments: Arguments) -> Step:
    """A method of a text or object, if templates may call it."""

    def call_method(run: Rendering, value: Any) -> Any:
        if isinstance(value, Undefined):
            raise ValueMissing(f"calls {name} of what is not there")
        method = METHODS.get(type(value), {}).get(name)
        if method is None:
            raise TemplateFailed(f"calls {name}, which templates cannot")
        given, named = _evaluated(run, arguments)
        return method(run, value, *given, **named)

    return call_method


def subscript(parts: list[Expression | None]) -> Step:
    """What stands in square brackets: an index, a key or a slice."""
    if not parts:
        raise TemplateFailed("[] holds nothing")
    if None not in parts and len(parts) == 1:
        index = parts[0]
        assert index is not None
        return lambda run, value: item(value, index(run))
    bounds: list[Expression | None] = [None]
    for part in parts:
        if part is None:
            bounds.append(None)
        else:
            bounds[-1] = part

    def cut(run: Rendering, value: Any) -> Any:
        if isinstance(value, Undefined) or not isinstance(value, str | list | tuple):
            raise ValueMissing("cuts a part out of what is not there")
        run.charge(len(value) // 64)
        return value[slice(*(None if bound is None else bound(run) for bound in bounds[:3]))]

    return cut


def hashable(key: Any) -> Any:
    """The key, unless it is a list or object, which cannot be one."""
    if isinstance(key, list | dict):
        raise TemplateFailed("a list cannot be a key")
    return key
