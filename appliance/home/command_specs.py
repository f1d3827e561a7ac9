"""What one device can be commanded: capabilities, their actions, and the range that this device takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from appliance.errors import Invalid, UnfitValue, Unsupported
from appliance.home.capabilities import CAPABILITIES
from appliance.home.commands import Command
from appliance.home.values import CHECKS, Value, kelvin_of
from appliance.tables.checks import is_number, shown
from appliance.tables.json_schema import NUMBER, TEXT, Part, Record, array_of


class CommandSpec(Struct, frozen=True, kw_only=True):
    """One capability that a device can be commanded, with the actions it takes and what it narrows.

    `min`, `max` and `step` bound the number of a `set`, in `unit` where the value has one; `values` are the options.
    `type` is the schema type; only for a capability that is not in the catalog, `custom.<adapter>.<field>`.
    """

    capability: str
    actions: tuple[str, ...]
    min: float | None = None
    max: float | None = None
    step: float | None = None
    unit: str | None = None
    values: tuple[str, ...] = ()
    type: str | None = None

    def schema(self) -> dict[str, Any]:
        """The capability's schema with what this device narrows, as JSON."""
        return COMMAND_SCHEMA(self)  # type: ignore[no-any-return]

    def check(self, command: Command) -> None:
        """Raise `Invalid`, with the range in the sentence, for a value to `set` that this device does not take."""
        if command.action != "set":
            return
        if self.type in CHECKS and self.capability not in CAPABILITIES:
            self._check_type(command.value)
        if self.values:
            self._check_option(command.value)
        elif self.min is not None or self.max is not None or self.step is not None or self.unit is not None:
            self._check_number(command.value)

    def _check_type(self, value: Value) -> None:
        try:
            CHECKS[str(self.type)](value)
        except Invalid as fault:
            raise Invalid(f"{self.capability} {fault}") from None

    def _check_option(self, value: Value) -> None:
        if value not in self.values:
            options = ", ".join(self.values)
            raise Invalid(f"{self.capability} must be one of {options} for this device, not {shown(value)}")

    def _check_number(self, value: Value) -> None:
        number, unit = _in_unit(value, self.unit)
        is_of_unit = unit is None or self.unit is None or unit == self.unit
        if not is_of_unit or not is_number(number) or not self._is_in_range(number) or not self._is_on_step(number):
            given = shown(number) if is_of_unit else f"{shown(number)} {unit}"
            raise Invalid(f"{self.capability} must be {self._range()} for this device, not {given}")

    def _is_in_range(self, number: float) -> bool:
        return (self.min is None or number >= self.min) and (self.max is None or number <= self.max)

    def _is_on_step(self, number: float) -> bool:
        if not self.step or number == self.max:
            return True
        steps = (number - (self.min or 0)) / self.step
        return abs(steps - round(steps)) < 1e-6 * max(1.0, abs(steps))

    def _range(self) -> str:
        if self.min is not None and self.max is not None:
            bounds = f"from {_format(self.min)} to {_format(self.max)}"
        elif self.min is not None:
            bounds = f"at least {_format(self.min)}"
        else:
            bounds = "a number" if self.max is None else f"at most {_format(self.max)}"
        unit = "" if self.unit is None else f" {self.unit}"
        steps = f" in steps of {_format(self.step)}" if self.step and self.step != 1 else ""
        return bounds + unit + steps


def _type_of(spec: CommandSpec) -> str:
    entry = CAPABILITIES.get(spec.capability)
    return spec.type or ("string" if entry is None else entry.type)


def _options_of(spec: CommandSpec) -> tuple[str, ...]:
    entry = CAPABILITIES.get(spec.capability)
    return spec.values or (() if entry is None else entry.values)


COMMAND_SCHEMA = Record(
    "CommandSchema",
    {"type": Part(TEXT, _type_of), "values": Part(array_of(TEXT), _options_of)},
    {**dict.fromkeys(("min", "max", "step"), NUMBER), "unit": TEXT},
    "The capability's schema with what this device narrows.",
)


def _format(number: float) -> str:
    return shown(int(number) if number == int(number) else number)


def check_offered(device_id: str, specs: Iterable[CommandSpec], command: Command) -> None:
    """Raise `Unsupported` for an action that the device does not offer, `Invalid` for a value outside its range."""
    actions: list[str] = []
    for spec in specs:
        if spec.capability != command.capability:
            continue
        if command.action in spec.actions:
            spec.check(command)
            return
        actions += spec.actions
    hint = f"; its actions are: {', '.join(actions)}" if actions else ""
    raise Unsupported(f"device '{device_id}' does not offer {command}{hint}")


def check_stated(specs: Iterable[CommandSpec], unfit: UnfitValue) -> None:
    """Raise `Invalid` with the range of the device, where a number is outside of that and it is not the catalog's."""
    value = unfit.command.value
    number, unit = (value.get("value"), value.get("unit")) if isinstance(value, dict) else (value, None)
    if not is_number(number):
        return
    for spec in specs:
        is_meant = spec.capability == unfit.command.capability and unfit.command.action in spec.actions
        if is_meant and unit in (None, spec.unit) and (spec.min, spec.max) != (0, 100):
            spec.check(unfit.command)


def _in_unit(value: Value, unit: str | None) -> tuple[Value, str | None]:
    """The number that a value states and its unit, in kelvin where that is asked and it came in mireds."""
    if not isinstance(value, dict):
        return value, None
    number, own = value.get("value"), value.get("unit")
    if own == "mireds" and unit == "kelvin" and is_number(number) and number:
        return kelvin_of(number), "kelvin"
    return number, own
