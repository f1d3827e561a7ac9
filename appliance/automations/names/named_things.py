"""The devices, variables, and other things that triggers and conditions name."""

from __future__ import annotations

from typing import Literal, NamedTuple

from appliance.automations.requirement import Requirement

SubjectKind = Literal[
    "adapter",
    "attribute",
    "command",
    "device",
    "error",
    "event",
    "group",
    "home",
    "hook",
    "room",
    "scene",
    "timer",
    "variable",
]

Subject = tuple[SubjectKind, str]
"""The kind and the name of a thing: `("device", "desk:light:0")`."""


class NamedThing(NamedTuple):
    """A thing, such as a device, that a field of a trigger or condition names.

    - `owner`: for an attribute or event, the device, room, or group to which it belongs.
    - `name`: an empty name of an event means any event of the owner.
    - `requirement`: the comparison of an attribute.
    """

    field: str
    kind: SubjectKind
    name: str
    owner: Subject | None = None
    requirement: Requirement | None = None

    @property
    def subject(self) -> Subject:
        return self.kind, self.name
