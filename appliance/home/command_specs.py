"""The commands that a device accepts, with the device's ranges, units, and options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from appliance.errors import Invalid, UnfitValue, Unsupported
from appliance.home.capabilities import CAPABILITIES
from appliance.home.commands import Command
from appliance.home.values import CHECKS, Value, kelvin_of
from appliance.tables.checks import format_value, is_number
from appliance.tables.json_schema import NUMBER, TEXT, Part, Record, array_of


def needs_unit(command: Command) -> Invalid:
    """Return the error for a number without a unit, if the device accepts several units."""
    written = f'{{ value = {format_value(command.value)}, unit = "…" }}'
    return Invalid(f"the value of {command.capability} needs a unit; write {written}")


class CommandSpec(Struct, frozen=True, kw_only=True, gc=False):
    """A capability for which a device accepts commands, with the device's actions and restrictions.

    - `min`, `max`, `step`: restrict the number of a `set`, in `unit` if the value has a unit.
    - `values`: the allowed words.
    - `type`: the schema type of a custom capability (`custom.<adapter>.<field>`).
    """

    capability: str
    actions: tuple[str, ...]
    min: int | float | None = None
    max: int | float | None = None
    step: int | float | None = None
    unit: str | None = None
    values: tuple[str, ...] = ()
    type: str | None = None

    def schema(self) -> dict[str, Any]:
        """Return the capability's schema with this device's restrictions, as JSON."""
        return COMMAND_SCHEMA(self)  # type: ignore[no-any-return]

    def with_unit(self, command: Command) -> Command:
        """Add this device's unit to the command if its number needs a unit."""
        if type_of(self) != "measurement" or not is_number(command.value):
            return command
        if self.unit is None:
            raise needs_unit(command)
        return replace(command, value={"value": command.value, "unit": self.unit})

    def check(self, command: Command) -> None:
        """Raise `Invalid` with the device's range if the value of a `set` is outside that range."""
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
            found = format_value(value)
            if str(value) in self.values:
                found += f' (write the value as text: "{value}")'
            raise Invalid(f"{self.capability} must be one of {', '.join(self.values)} for this device, not {found}")

    def _check_number(self, value: Value) -> None:
        number, unit = _in_unit(value, self.unit) if isinstance(value, dict) else (value, None)
        if unit is not None and self.unit is not None and unit != self.unit:
            named = unit if isinstance(unit, str) and unit else format_value(unit)
            raise Invalid(f"{self.capability}: unknown unit {named}; write {self.unit}")
        if not is_number(number) or not self._allows(number):
            raise Invalid(
                f"{self.capability} must be {self.range_text()} for this device, not {format_value(number)}"
            )

    def _allows(self, number: float) -> bool:
        """Return whether the number is in the range and on a step. The maximum need not be on a step."""
        if (self.min is not None and number < self.min) or (self.max is not None and number > self.max):
            return False
        if not self.step or number == self.max:
            return True
        steps = (number - (self.min or 0)) / self.step
        return abs(steps - round(steps)) < 1e-6 * max(1.0, abs(steps))

    def range_text(self) -> str:
        """Return the range of a `set` with its unit."""
        if self.min is not None and self.max is not None:
            bounds = f"from {_format(self.min)} to {_format(self.max)}"
        elif self.min is not None:
            bounds = f"at least {_format(self.min)}"
        else:
            bounds = "a number" if self.max is None else f"at most {_format(self.max)}"
        unit = "" if self.unit is None else f" {self.unit}"
        steps = f" in steps of {_format(self.step)}" if self.step and self.step != 1 else ""
        return bounds + unit + steps


def type_of(spec: CommandSpec) -> str:
    entry = CAPABILITIES.get(spec.capability)
    return spec.type or ("string" if entry is None else entry.type)


def options_of(spec: CommandSpec) -> tuple[str, ...]:
    """Return the words that the device accepts. Return an empty tuple if the values are not words."""
    entry = CAPABILITIES.get(spec.capability)
    return spec.values or (() if entry is None else entry.values)


COMMAND_SCHEMA = Record(
    "CommandSchema",
    {"type": Part(TEXT, type_of), "values": Part(array_of(TEXT), options_of)},
    {**dict.fromkeys(("min", "max", "step"), NUMBER), "unit": TEXT},
    "The capability's schema with the restrictions of this device.",
)


def _format(number: float) -> str:
    return format_value(int(number) if number == int(number) else number)


def accepts(specs: Iterable[CommandSpec], command: Command) -> bool:
    """Return whether the device offers this action of the capability."""
    return any(each.capability == command.capability and command.action in each.actions for each in specs)


def check_offered(device_id: str, specs: Iterable[CommandSpec], command: Command) -> Command:
    """Check the command, and add the device's unit to a number without a unit. Raise `Unsupported` if the device does
    not offer the action. Raise `Invalid` if the value is outside the device's range."""
    actions: list[str] = []
    for spec in specs:
        if spec.capability != command.capability:
            continue
        if command.action in spec.actions:
            command = spec.with_unit(command)
            spec.check(command)
            return command
        actions += spec.actions
    hint = f"; its actions are: {', '.join(actions)}" if actions else ""
    raise Unsupported(f"device '{device_id}' does not offer {command}{hint}")


def check_device_range(specs: Iterable[CommandSpec], unfit: UnfitValue) -> None:
    """Raise `Invalid` for a number outside the device's range, if that range differs from the catalog's range."""
    value = unfit.command.value
    number, unit = (value.get("value"), value.get("unit")) if isinstance(value, dict) else (value, None)
    if not is_number(number):
        return
    for spec in specs:
        is_meant = spec.capability == unfit.command.capability and unfit.command.action in spec.actions
        if is_meant and unit in (None, spec.unit) and (spec.min, spec.max) != (0, 100):
            spec.check(unfit.command)


def _in_unit(value: dict[str, Value], unit: str | None) -> tuple[Value, str | None]:
    """Return a value's number and unit. If `unit` is kelvin, convert mireds to kelvin."""
    number, own = value.get("value"), value.get("unit")
    if own == "mireds" and unit == "kelvin" and is_number(number) and number:
        return kelvin_of(number), "kelvin"
    return number, own
