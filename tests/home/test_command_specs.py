"""The commands of one device: range, options, and the error message of a refusal."""

from __future__ import annotations

import pytest

from appliance.errors import Invalid, Unsupported
from appliance.home.command_specs import CommandSpec, check_offered
from appliance.home.commands import Command
from appliance.home.values import Value
from tests.fakes.rows import each_row

WARMTH = CommandSpec(capability="color_temperature", actions=("set",), min=2900, max=7000, unit="kelvin")
HEAT = CommandSpec(capability="target_temperature", actions=("set",), min=5, max=30, step=0.5, unit="°C")
SPEED = CommandSpec(capability="custom.mqtt.speed", actions=("set",), min=1, max=3, step=1, type="integer")
LEVEL = CommandSpec(capability="custom.mqtt.level", actions=("set",), values=("1", "2"))
MODE = CommandSpec(capability="custom.mqtt.mode", actions=("set",), values=("eco", "boost"), type="enum")
DIM = CommandSpec(capability="brightness", actions=("set", "increase"), min=10)
CAP = CommandSpec(capability="volume", actions=("set",), max=60)
TEXT = CommandSpec(capability="custom.mqtt.text", actions=("set",), type="string")
BUTTON = CommandSpec(capability="custom.mqtt.restart", actions=("press",))


def body(spec: CommandSpec, value: Value, action: str = "set") -> Command:
    return Command(capability=spec.capability, action=action, value=value)


def measured(value: Value, unit: str) -> Value:
    return {"value": value, "unit": unit}


@each_row(
    ("spec", "value"),
    [
        (WARMTH, measured(2900, "kelvin")),
        (WARMTH, measured(7000, "kelvin")),
        (WARMTH, measured(300, "mireds")),
        (HEAT, measured(20.5, "°C")),
        (HEAT, measured(30, "°C")),
        (SPEED, 2),
        (MODE, "eco"),
        (DIM, 10),
        (CAP, 0),
        (TEXT, "ä"),
    ],
)
def test_a_value_within_the_range_is_accepted(spec: CommandSpec, value: Value) -> None:
    check_offered("x", [BUTTON, spec], body(spec, value))


@each_row(
    ("spec", "value", "message"),
    [
        (WARMTH, measured(2899, "kelvin"), "must be from 2900 to 7000 kelvin for this device, not 2899"),
        (WARMTH, measured(345, "mireds"), "must be from 2900 to 7000 kelvin for this device, not 2899"),
        (HEAT, measured(20.3, "°C"), "must be from 5 to 30 °C in steps of 0.5 for this device, not 20.3"),
        (HEAT, 31, "must be from 5 to 30 °C in steps of 0.5 for this device, not 31"),
        (SPEED, 0, "must be from 1 to 3 for this device, not 0"),
        (SPEED, 1.5, "must be an integer, not 1.5"),
        (SPEED, "fast", "must be an integer, not 'fast'"),
        (SPEED, True, "must be an integer, not true"),
        (MODE, "turbo", "must be one of eco, boost for this device, not 'turbo'"),
        (MODE, ["eco"], "must be one of eco, boost for this device, not an array"),
        (LEVEL, 2, 'must be one of 1, 2 for this device, not 2 (write the value as text: "2")'),
        (DIM, 9, "must be at least 10 for this device, not 9"),
        (CAP, 61, "must be at most 60 for this device, not 61"),
        (TEXT, 5, "must be a string, not 5"),
    ],
)
def test_a_value_outside_the_range_is_refused_with_the_range(spec: CommandSpec, value: Value, message: str) -> None:
    with pytest.raises(Invalid) as failed:
        check_offered("x", [spec], body(spec, value))
    assert str(failed.value) == f"{spec.capability} {message}"


@each_row(
    ("value", "message"),
    [
        (measured(17, "C"), "target_temperature: unknown unit C; write °C"),
        (measured(68, "°F"), "target_temperature: unknown unit °F; write °C"),
        (measured(17, ""), "target_temperature: unknown unit ''; write °C"),
    ],
)
def test_an_unknown_unit_is_named_with_the_right_one(value: Value, message: str) -> None:
    with pytest.raises(Invalid) as failed:
        check_offered("x", [HEAT], body(HEAT, value))
    assert str(failed.value) == message


def test_a_bare_number_gets_the_unit_of_a_device_that_accepts_exactly_one() -> None:
    assert check_offered("x", [HEAT], body(HEAT, 20.5)).value == measured(20.5, "°C")
    own = CommandSpec(capability="custom.it.target", actions=("set",), type="measurement", min=1, unit="bar")
    assert check_offered("x", [own], body(own, 2)).value == measured(2, "bar")
    any_unit = CommandSpec(capability="target_temperature", actions=("set",))
    with pytest.raises(Invalid) as failed:
        check_offered("x", [any_unit], body(any_unit, 20))
    assert str(failed.value) == 'the value of target_temperature needs a unit; write { value = 20, unit = "…" }'


def test_a_step_can_be_outside_the_range() -> None:
    check_offered("x", [DIM], body(DIM, 5, "increase"))


@each_row(
    ("specs", "command", "message"),
    [
        ([], body(DIM, 5), "device 'x' does not offer brightness set"),
        ([WARMTH], body(DIM, 5), "device 'x' does not offer brightness set"),
        ([DIM], body(DIM, 5, "decrease"), "… brightness decrease; its actions are: set, increase"),
        ([BUTTON], body(BUTTON, 1), "… custom.mqtt.restart set; its actions are: press"),
    ],
)
def test_an_unsupported_action_is_refused(specs: list[CommandSpec], command: Command, message: str) -> None:
    with pytest.raises(Unsupported) as failed:
        check_offered("x", specs, command)
    assert str(failed.value) == message.replace("…", "device 'x' does not offer")


def test_a_schema_is_the_capabilitys_with_the_devices_limits() -> None:
    assert WARMTH.schema() == {"type": "color_temperature", "values": [], "min": 2900, "max": 7000, "unit": "kelvin"}
    power = CommandSpec(capability="power", actions=("on", "off"))
    assert power.schema() == {"type": "enum", "values": ["on", "off"]}
    assert MODE.schema() == {"type": "enum", "values": ["eco", "boost"]}
    assert SPEED.schema() == {"type": "integer", "values": [], "min": 1, "max": 3, "step": 1}
