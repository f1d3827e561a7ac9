"""Commands as Lua code: the device accepts each copied example."""

from __future__ import annotations

from typing import Any

import pytest

from appliance.cli.lua_form import example_of, lua_commands, lua_value, range_of
from appliance.home.capabilities import CAPABILITIES
from appliance.home.command_specs import CommandSpec, check_offered
from appliance.home.commands import VALUED_ACTIONS, Command
from tests.fakes.rows import each_row

SPECS = [
    *(
        CommandSpec(capability=each.key, actions=each.actions)
        for each in CAPABILITIES.values()
        if VALUED_ACTIONS & set(each.actions)
    ),
    CommandSpec(capability="brightness", actions=("set", "increase"), min=60, max=90, step=7),
    CommandSpec(capability="brightness", actions=("set",), min=1, max=3),
    CommandSpec(capability="target_temperature", actions=("set",), min=22.5, max=23, step=0.25, unit="°C"),
    CommandSpec(capability="target_temperature", actions=("set",), min=-10, max=-5, unit="°C"),
    CommandSpec(capability="color_temperature", actions=("set",), min=2200, max=2700, unit="kelvin"),
    CommandSpec(capability="hvac_mode", actions=("set",), values=("heat", "cool")),
    CommandSpec(capability="custom.mqtt.speed", actions=("set",), min=0.1, max=0.4, step=0.1),
    CommandSpec(capability="custom.mqtt.mode", actions=("set",), values=("eco", "boost")),
    CommandSpec(capability="custom.mqtt.text", actions=("set",), type="string"),
    CommandSpec(capability="custom.mqtt.flag", actions=("set",), type="boolean"),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.capability} {spec.min} {spec.values}")
def test_every_example_is_accepted(spec: CommandSpec) -> None:
    stated = {"capability": spec.capability, "action": "set", "value": example_of(spec)}
    check_offered("x:1", [spec], Command.parse(stated))
    for action in spec.actions:
        assert any(f'action = "{action}"' in call for call, _ in lua_commands("x:1", spec))


@each_row(
    "value, text",
    [
        (None, "nil"),
        (True, "true"),
        (0.1 + 0.2, "0.3"),
        (12.345600000000001, "12.3456"),
        (7, "7"),
        ('a "b"\n', '"a \\"b\\"\\n"'),
        ({"value": 21.5, "unit": "°C"}, '{ value = 21.5, unit = "°C" }'),
        ({"a b": []}, '{ ["a b"] = {} }'),
        ([1, "x"], '{ 1, "x" }'),
    ],
)
def test_a_value_is_written_in_lua_syntax(value: Any, text: str) -> None:
    assert lua_value(value) == text


@each_row(
    "spec, text",
    [
        (CommandSpec(capability="brightness", actions=("set",), min=0, max=100), "from 0 to 100 %"),
        (CommandSpec(capability="brightness", actions=("set",)), "from 0 to 100 %"),
        (SPECS[-8], "from 22.5 to 23 °C in steps of 0.25"),
        (CommandSpec(capability="muted", actions=("set",)), "true or false"),
        (CommandSpec(capability="hvac_mode", actions=("set",), values=("heat", "cool")), "heat, cool"),
    ],
)
def test_a_range_has_its_unit(spec: CommandSpec, text: str) -> None:
    assert range_of(spec) == text
