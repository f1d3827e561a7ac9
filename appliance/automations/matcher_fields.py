"""How `attribute`, `equals`, `above` and `below` are read, which triggers and conditions share."""

from __future__ import annotations

import re

from appliance.automations.fields import Fields, text
from appliance.automations.matchers import NUMERIC, Anything, Equal, Matcher, Within, check_equal
from appliance.errors import Invalid
from appliance.home import values
from appliance.home.capabilities import CAPABILITIES
from appliance.home.values import Value
from appliance.sections import nearest

_CUSTOM = re.compile(r"custom\.[^.\s]+\.\S+\Z")


PRESENCE = "presence"
"""The attribute that a presence condition asks for unless it names another; no capability has this name."""


def take_attribute(fields: Fields) -> str | None:
    """The field `attribute`: a capability, `presence`, or `custom.<adapter>.<field>`."""

    def check(value: Value) -> str:
        if text(value) in CAPABILITIES or value == PRESENCE or _CUSTOM.match(value):
            return value  # type: ignore[no-any-return]
        near = nearest(value, [*CAPABILITIES, PRESENCE])
        hint = "GET /capabilities lists those there are" if near is None else f"did you mean {near}"
        raise Invalid(f"{values.shown(value)} is not a capability or custom.<adapter>.<field>; {hint}")

    return fields.take("attribute", check)


def take_matcher(fields: Fields, attribute: str | None) -> Matcher:
    """The fields `equals`, or `above` and `below`, as they fit the attribute; anything where all are left out."""
    within = Within(above=_bound(fields, "above", attribute), below=_bound(fields, "below", attribute))
    if fields.has("equals") and (fields.has("above") or fields.has("below")):
        fields.fault("equals", "cannot stand beside above or below; choose one")
    if fields.has("equals"):
        return take_equal(fields, attribute)
    if within == Within():
        fields.raw("equals")
        return Anything()
    if within.above is not None and within.below is not None and not within.above < within.below:
        fields.fault("below", f"must be greater than above ({within.above}), or no number lies between")
    return within


def take_equal(fields: Fields, attribute: str | None, default: Value = None) -> Matcher:
    """The field `equals`, a value that the attribute can take; `default` is what it is where it is left out."""
    value = fields.raw("equals")
    value = default if value is None else value
    if attribute is None:
        return Equal(value=value)
    try:
        return Equal(value=check_equal(attribute, value))
    except Invalid as fault:
        fields.fault("equals", f"{fault}, for {attribute}" if fields.has("equals") else f"is missing: it {fault}")
        return Equal(value=value)


def _bound(fields: Fields, name: str, attribute: str | None) -> float | None:
    bound = fields.take(name, values.number)
    entry = CAPABILITIES.get(attribute or "")
    if fields.has(name) and entry is not None and entry.type not in NUMERIC:
        fields.fault(name, f"needs an attribute that is a number, which {attribute} is not")
    return bound
