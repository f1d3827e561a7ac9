"""The Lua expressions for values of entities."""

from __future__ import annotations

from appliance.cli.homeassistant.entities import Comparison, Entities, Target, Variable
from appliance.cli.homeassistant.lua import literal, quote
from appliance.cli.homeassistant.not_translated import NotTranslated


def comparison_in_lua(test: Comparison) -> str:
    """Return the Lua expression for a test of one value."""
    value = value_in_lua(test.target)
    if test.test == "equals":
        return f"{value} == {literal(test.value)}"
    target = test.target
    if isinstance(target, Variable):
        numeric = f"ha.to_number({value})"
    else:
        numeric = f"ha.number(ctx, {quote(target.device_id)}, {quote(target.attribute)})"
    return f"ha.is_{test.test}({numeric}, {literal(test.value)})"


def value_in_lua(target: Target | Variable) -> str:
    """Return the Lua expression for a value. The expression is nil while the value is unknown."""
    if isinstance(target, Variable):
        return f"ctx:get({quote(target.name)})"
    return f"ha.value(ctx, {quote(target.device_id)}, {quote(target.attribute)})"


def number_in_lua(target: Target | Variable, default: str | None = None) -> str:
    """Return the Lua expression for a number in Home Assistant's scale."""
    more = f", {default}" if default is not None else ""
    if isinstance(target, Variable):
        return f"ha.to_number({value_in_lua(target)}{more})"
    if target.factor != 1:
        more = f", {default or 'nil'}, {target.factor:g}"
    return f"ha.number(ctx, {quote(target.device_id)}, {quote(target.attribute)}{more})"


def number_of(entities: Entities, entity_id: str, attribute: str | None) -> str:
    """Return the Lua expression for an entity's state or attribute as a number."""
    if entity_id == "sun.sun":
        return sun_height(entities, attribute or "")
    return number_in_lua(entities.target(entity_id, attribute))


def sun_height(entities: Entities, attribute: str) -> str:
    if attribute != "elevation" or not entities.installation.locale.keys() >= {"latitude", "longitude"}:
        raise NotTranslated(f"the import does not support {attribute or 'the state'} of the sun")
    return "ha.sun_height()"
