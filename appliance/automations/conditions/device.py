"""Conditions on devices, rooms, groups, and variables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

from msgspec.structs import replace

from appliance.automations import field_checks as check
from appliance.automations.change_times import Comparison
from appliance.automations.conditions.base import Condition, Fact
from appliance.automations.environment import Environment
from appliance.automations.field_checks import take_attribute
from appliance.automations.names.named_things import NamedThing
from appliance.automations.requirement import Requirement, take_equal, take_requirement
from appliance.automations.schedule.clock_watch import UNTRUSTED
from appliance.errors import NotFound
from appliance.home.capabilities import PRESENCE
from appliance.home.model import Device
from appliance.home.values import Value, describe
from appliance.home_locale import Locale
from appliance.tables.fields import Table

MAX_DEVICE_COUNT = 1_000_000


class DeviceState(Condition, frozen=True, kw_only=True):
    """A device's attribute matches, and has matched for at least `for_secs` seconds.

    If neither `above` nor `below` is set, the duration begins at the attribute's last change. The type `presence`
    uses the same class.
    """

    type: str = "device_state"
    device_id: str
    attribute: str
    requirement: Requirement
    for_secs: float = 0

    @property
    def needs_clock(self) -> bool:
        return self.for_secs > 0

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale) -> Condition | None:
        device_id = table.need("device_id", check.text)
        attribute = take_attribute(table)
        for_secs = 0.0
        if kind == "presence":
            attribute = attribute if table.has("attribute") else PRESENCE.key
            requirement = take_equal(table, attribute, default=True)
        else:
            if not table.has("attribute"):
                table.fault("attribute", "is missing")
            requirement = take_requirement(table, attribute)
            for_secs = table.take("for_secs", check.seconds) or 0
            if attribute is not None and not table.has("for_secs"):
                _demand_comparison(table)
        if device_id is None or attribute is None:
            return None
        return cls(type=kind, device_id=device_id, attribute=attribute, requirement=requirement, for_secs=for_secs)

    def names(self) -> list[NamedThing]:
        device = NamedThing("device_id", "device", self.device_id)
        return [device, NamedThing("attribute", "attribute", self.attribute, device.subject, self.requirement)]

    def evaluate(self, environment: Environment, instant: datetime | None) -> Fact:
        """Compare the attribute. If the device or attribute is missing, the result is unknown."""
        device, needs = environment.registry.find_device(self.device_id), str(self.requirement)
        if device is None:
            return Fact(holds=None, past=str(NotFound("device", self.device_id)))
        value = device.attributes.get(self.attribute)
        if value is None:
            return Fact(holds=None, past=f"device '{self.device_id}' has no {self.attribute}", needs=needs)
        fact = _compare(value, self.requirement, self.attribute, f"{self.attribute} of {self.device_id!r}")
        return self._add_duration(environment, device, instant, fact) if fact.holds and self.for_secs else fact

    def _add_duration(self, environment: Environment, device: Device, instant: datetime | None, fact: Fact) -> Fact:
        """Check whether the attribute has matched for long enough. While the clock is not trusted, the result is
        unknown."""
        needs = f"{self.requirement} for {self.for_secs:g} s"
        if instant is None:
            return Fact(holds=None, past=UNTRUSTED, needs=needs)
        since = max(timedelta(), instant - environment.change_times.get(device, self.comparison))
        if since >= timedelta(seconds=self.for_secs):
            return replace(fact, needs=needs)
        secs = f"{since.total_seconds():.0f} s"
        held = f"was {self.requirement} for {secs}" if self.requirement.is_range else f"changed {secs} ago"
        return Fact(holds=False, past=f"{self.attribute} {held}", needs=needs)

    @property
    def comparison(self) -> Comparison:
        """Return the comparison that must hold for `for_secs` seconds."""
        return Comparison(self.attribute, self.requirement)


class PlaceState(Condition, frozen=True, kw_only=True):
    """The number of matching devices in a room or group is from `min_devices` to `max_devices`. If a bound is
    None, there is no limit."""

    type: str = "room_state"
    place_id: str
    min_devices: int | None = None
    max_devices: int | None = None

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale) -> Condition | None:
        place_id = table.need(f"{kind.removesuffix('_state')}_id", check.text)
        least = table.take("min_devices", check.integer_to(MAX_DEVICE_COUNT))
        most = table.take("max_devices", check.integer_to(MAX_DEVICE_COUNT))
        if least is not None and most is not None and least > most:
            table.fault("max_devices", f"must not be less than {least}, the value of min_devices")
        if not table.has("min_devices") and not table.has("max_devices"):
            table.fault("min_devices", "and max_devices are both missing; set one or both")
        return None if place_id is None else cls(type=kind, place_id=place_id, min_devices=least, max_devices=most)

    @property
    def place(self) -> Literal["room", "group"]:
        return "room" if self.type == "room_state" else "group"

    def names(self) -> list[NamedThing]:
        return [NamedThing(f"{self.place}_id", self.place, self.place_id)]

    def evaluate(self, environment: Environment, instant: datetime | None) -> Fact:
        """Compare the number of devices. If the room or group is missing, the number is unknown."""
        registry = environment.registry
        list_devices = registry.list_room_devices if self.place == "room" else registry.list_group_devices
        try:
            count = len(list_devices(self.place_id))
        except NotFound as error:
            return Fact(holds=None, past=str(error))
        is_met = count >= (self.min_devices or 0) and (self.max_devices is None or count <= self.max_devices)
        devices = "1 device" if count == 1 else f"{count} devices"
        return Fact(holds=is_met, past=f"{self.place} '{self.place_id}' had {devices}", needs=self._bounds())

    def _bounds(self) -> str:
        bounds = (("at least", self.min_devices), ("at most", self.max_devices))
        return " and ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)


class VariableState(Condition, frozen=True, kw_only=True):
    """The value of a variable matches."""

    type: str = "variable"
    name: str
    requirement: Requirement

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale) -> Condition | None:
        name, requirement = table.need("name", check.variable_name), take_requirement(table, None)
        _demand_comparison(table)
        return None if name is None else cls(name=name, requirement=requirement)

    def names(self) -> list[NamedThing]:
        return [NamedThing("name", "variable", self.name)]

    def evaluate(self, environment: Environment, instant: datetime | None) -> Fact:
        """Compare the variable. An unset variable does not match."""
        value = environment.variables.find(self.name)
        if value is None:
            return Fact(holds=False, past=f"variable '{self.name}' is not set", needs=str(self.requirement))
        return _compare(value, self.requirement, f"variable {self.name!r}", self.name)


def _demand_comparison(table: Table) -> None:
    if not any(map(table.has, ("equals", "above", "below"))):
        table.fault("equals", "is missing; set equals, above, or below")


def _compare(value: Value, requirement: Requirement, past_name: str, present_name: str) -> Fact:
    """Compare the value. The names are the subjects of the sentences in the past and in the present tense."""
    is_usable = requirement.is_usable(value)
    needs = str(requirement) if is_usable else f"a number {requirement}"
    holds = requirement.holds(value) if is_usable else None
    shown = describe(value)
    return Fact(holds=holds, past=f"{past_name} was {shown}", present=f"{present_name} = {shown}", needs=needs)


HOME_CONDITIONS: Mapping[str, type[Condition]] = {
    "device_state": DeviceState,
    "presence": DeviceState,
    "room_state": PlaceState,
    "group_state": PlaceState,
    "variable": VariableState,
}
