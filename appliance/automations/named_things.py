"""The devices, variables, and other things of the home that triggers and conditions name."""

from __future__ import annotations

from typing import NamedTuple

from appliance.automations.matcher import Matcher

Subject = tuple[str, str]
"""The kind and the name of a thing: `("device", "desk:light:0")`."""


class NamedThing(NamedTuple):
    """A device, attribute, or other subject that a field of a trigger or condition names. For an attribute or event,
    `owner` is the device, room, or group with that attribute or event. An event without a name means any event of the
    owner. `matcher` is the attribute's comparison."""

    field: str
    kind: str
    name: str
    owner: Subject | None = None
    matcher: Matcher | None = None

    @property
    def subject(self) -> Subject:
        return self.kind, self.name
