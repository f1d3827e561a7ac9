"""Literals in calls of `ctx` that can only fail are named with their line, and all others pass."""

from __future__ import annotations

import pytest

from appliance.automations.call_checks import find_wrong_literals
from appliance.home.commands import CommandSpec
from appliance.lua.source import Source

LAMP = (
    CommandSpec(capability="power", actions=("on", "off")),
    CommandSpec(capability="brightness", actions=("set",), min=1, max=80),
)
SPECS = {"x:lamp": LAMP, "lamp": LAMP}

WRONG = {
    "ctx:sleep(7200)": "ctx:sleep takes 0 to 3600 seconds, not 7200",
    "ctx:sleep(2 * 60 * 60)": "not 7200",
    "ctx:sleep(-1)": "not -1",
    'ctx:start_timer("off", -1)': "ctx:start_timer: timer 'off': must take 0 to 34560000 seconds (400 days), not -1",
    'ctx:start_timer("off." .. id, 400 * 86401)': "must take 0 to 34560000 seconds",
    'ctx:wait_for("x:tv", { attribute = "power", equals = 1, timeout_secs = 7200 })': "timeout_secs takes 0 to 3600",
    'ctx:wait_for("x:tv", { attribute = "powr", equals = "on" })': "'powr' is not an attribute; did you mean power",
    'ctx:command("x:tv", { capability = "brightnes", action = "set", value = 4 })': "did you mean brightness",
    'ctx:command("x:tv", { capability = "power", action = "turn_on" })': "power has no action 'turn_on'",
    'ctx:command(id, { capability = "power", action = "turn_on" })': "power has no action 'turn_on'",
    'ctx:command(id, { capability = "power", action = "turn_on", value = f(1, 2) })': "power has no action 'turn_on'",
    'ctx:command("x:tv", { capability = "brightness", action = "set", value = 400 })': "brightness",
    'ctx:command("x:tv", { capability = "brightness", action = "set" })': "needs a value",
    'ctx:command(id, { capability = "color_temperature", action = "set", value = { value = 300, unit = "K" } })': (
        'write unit = "kelvin"'
    ),
    'ctx:command("x:lamp", { capability = "power", action = "toggle" })': "its actions are: on, off",
    'ctx:command("lamp", { capability = "brightness", action = "set", value = 90 })': "80",
    'ctx:command("x:lamp", { capability = "volume", action = "set", value = n })': "does not offer volume set",
    'ctx:command("x:lamp", { capability = "color_temperature", action = "set", value = 3 })': "does not offer",
    'ctx:command_room("hall", { capability = "powr", action = "on" })': "did you mean power",
    'ctx:command_group("all", { ["capability"] = "power", ["action"] = "onn" })': "did you mean action",
    'local OFF = { capability = "power", action = "of" }': "did you mean action",
}

RIGHT = [
    "ctx:sleep(3600)",
    "ctx:sleep(seconds)",
    "ctx:start_timer('off', 60)",
    "ctx:start_timer(name, minutes * 60, { a = 1 })",
    "ctx:sleep(60 * minutes)",
    "ctx:sleep(7200 / 4)",
    "-- ctx:sleep(7200)",
    'print("ctx:sleep(7200)")',
    'ctx:command("x:lamp", { capability = "power", action = "on" })',
    'ctx:command("x:lamp", { capability = "power", action = is_on and "on" or "off" })',
    'ctx:command("x:lamp", { capability = name, action = "anything" })',
    'ctx:command("x:lamp", { capability = "brightness", action = "set", value = level })',
    'ctx:command("x:lamp", options)',
    'ctx:command("x:tv", { capability = "custom.mqtt.speed", action = "set", value = 3 })',
    'ctx:command("x:lamp", { capability = "power", action = "on", transition_secs = 2 })',
    'ctx:wait_for("x:tv", { attribute = "custom.mqtt.x", equals = 1 })',
    'ctx:wait_for("x:tv", wanted)',
    "ctx:command(function() return { 1, 2 } end, { f(1), [2] = 3, x = { } })",
    "local t = { capability = capability, action = 'what' }",
    "ctx:sleep(",
    "ctx:command({{{{{{{{{{{{{{{{",
    'ctx:command("x", {',
]


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_literal_is_reported(text: str) -> None:
    [fault] = find_wrong_literals(Source(name="x.lua", text=f"\n{text}\n".encode()), SPECS)
    assert fault.line == 2 and WRONG[text] in fault.message, fault


@pytest.mark.parametrize("text", RIGHT)
def test_all_other_calls_pass(text: str) -> None:
    assert [*find_wrong_literals(Source(name="x.lua", text=text.encode()), SPECS)] == []
