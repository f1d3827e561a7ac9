"""If a call of `ctx` always fails because of its literal arguments, the call is reported with its line. All other
calls are accepted."""

from __future__ import annotations

import pytest

from appliance.automations.names.call_checks import find_wrong_literals
from appliance.home.command_specs import CommandSpec
from appliance.lua.text.source import Source

LAMP = (
    CommandSpec(capability="power", actions=("on", "off")),
    CommandSpec(capability="brightness", actions=("set",), min=1, max=80),
)
STRIP = (CommandSpec(capability="color_temperature", actions=("set",)),)
SPECS = {"x:lamp": LAMP, "lamp": LAMP, "x:strip": STRIP, "x:sensor": ()}

WRONG = {
    "ctx:sleep(7200)": "ctx:sleep takes 0 to 3600 seconds, not 7200",
    "ctx:sleep(2 * 60 * 60)": "not 7200",
    "ctx:sleep(3600.001)": "not 3600.001",
    "ctx:sleep(-1)": "not -1",
    'ctx:start_timer("off", -1)': "timer 'off': the duration must be 0 to 34560000 seconds (400 days), not -1",
    'ctx:start_timer("off." .. id, 400 * 86401)': "the duration must be 0 to 34560000 seconds",
    'ctx:wait_for("x:tv", { attribute = "power", equals = 1, timeout_secs = 3600.25 })': "0 to 3600, not 3600.25",
    'ctx:wait_for("x:tv", { attribute = "powr", equals = "on" })': "'powr' is not an attribute; did you mean power?",
    'ctx:command("x:tv", { capability = "brightnes", action = "set", value = 4 })': "did you mean brightness?",
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
    'ctx:command("x:sensor", { capability = "power", action = "on" })': "'x:sensor' does not offer power on",
    'ctx:command("x:tv", { capabilty = "power", action = "on" })': (
        "ctx:command: capabilty is not a field of a command; did you mean capability?"
    ),
    'ctx:command(id, { capability = "power", action = "on", valeu = 5 })': "did you mean value?",
    'ctx:command(id, { capability = "power", action = true })': 'write action = "on"',
    'ctx:command_room("hall", { capability = "powr", action = "on" })': "did you mean power?",
    'ctx:command_group("all", { ["capability"] = "power", ["action"] = "onn" })': "did you mean action",
    'local OFF = { capability = "power", action = "of" }': "did you mean action",
    'local OFF = { capability = "power", action = "of" } ctx:command("x:lamp", OFF)': "did you mean action",
    'local W = { capability = "color_temperature", action = "set", value = 3 } ctx:command("x:strip", W)': (
        'unit = "kelvin"'
    ),
    "local SECS <const> = 1 local LONG = 7200 ctx:sleep(LONG)": "not 7200",
    "ctx:sleep()": "ctx:sleep needs argument 1, a number; write ctx:sleep(number)",
    'ctx:sleep("5")': "ctx:sleep: argument 1 must be a number, not string",
    "ctx:notify()": "ctx:notify needs argument 1, a string; write ctx:notify(string, table or nothing)",
    'ctx:notify("")': "ctx:notify: the message must have 1 to 4096 characters",
    'ctx:notify("x", "y")': "argument 2 must be a table, not string",
    'ctx:notify("x", { actions = { { label = "Off" } } })': "ctx:notify: each action must be like",
    'ctx:notify("x", { "y" })': "the fields must be a table with named fields",
    'ctx:log("warning", "x")': "ctx:log: level must be trace, debug, info, warn or error",
    'ctx:log("warning", text)': "did you mean warn?",
    'ctx:log("x")': "ctx:log: level must be",
    'ctx:log("info", "x", 5)': "argument 3 must be a table, not number",
    'ctx:set("A b", 1)': "ctx:set: the variable's name must be 1 to 64 characters",
    'ctx:set("A b", value)': "the variable's name",
    'ctx:get("A b")': "ctx:get: the variable's name",
    'ctx:set("a", 1, { durabel = true })': "did you mean durable?",
    'ctx:set("a", 1, { durable = 1 })': "durable",
    "ctx:set(5, 1)": "ctx:set: argument 1 must be a string, not number",
    'ctx:start_timer("a")': "argument 2, a number; write ctx:start_timer(string, number, any or nothing)",
    "ctx:get()": "ctx:get needs argument 1, a string; write ctx:get(string, any or nothing)",
    "ctx:cancel_timer(1)": "ctx:cancel_timer: argument 1 must be a string",
    'ctx:command("x:tv")': "ctx:command needs argument 2, a table; write ctx:command(string, table)",
    "ctx:command(id)": "ctx:command needs argument 2",
    'ctx:command("x:tv", "on")': "argument 2 must be a table, not string",
    'ctx:command("x:tv", {})': "ctx:command: capability",
    'ctx:invoke("x:y", { 1 })': "ctx:invoke: the payload must be a table with named fields",
    "ctx:run_scene()": "ctx:run_scene needs argument 1, a string",
    "ctx:run_scene(nil)": "ctx:run_scene: argument 1 must be a string, not nil",
    "ctx:get_device({})": "ctx:get_device: argument 1 must be a string, not table",
    'ctx:wait_for("x:tv", { attribute = "power", equals = "on" })': "timeout_secs",
    'ctx:wait_for("x:tv", { attribute = "power", timeout_secs = 5 })': "ctx:wait_for needs equals, above, or below",
    'ctx:wait_for("x:tv", { attribute = "power", equal = "on", timeout_secs = 5 })': "did you mean equals?",
    "ctx:snapshot({ 1 })": "ctx:snapshot takes a list of device ids",
    'ctx:snapshot("x")': "ctx:snapshot: argument 1 must be a table",
    "ctx:restore({ 1 })": "ctx:restore takes the result of ctx:snapshot",
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
    'ctx:wait_for("x:tv", { attribute = "custom.mqtt.x", equals = 1, timeout_secs = 5 })',
    'ctx:wait_for("x:tv", condition)',
    "ctx:command(function() return { 1, 2 } end, { f(1), [2] = 3, x = { } })",
    *(
        f'ctx:command("x:tv", {{ {key} = 1, capability = "power", action = "on" }}) ctx:notify("x", {{ {key} = 1 }})'
        for key in (r'["a\x41"]', r'["\u{e9}"]', "[ [[value]] ]", "[1]", "[-1]", "[1.5]", "[true]", "[name]")
    ),
    "local t = { capability = capability, action = 'what' }",
    'queue:get() queue:set("A b", 1) log:log("warning") self.ctx:notify() robot:command("arm", { speed = 5 })',
    'ctx:notify(f()) ctx:notify(...) ctx:command(unpack(all)) ctx:command(f"x") ctx:notify("x" .. y)',
    'ctx:log("info", nil) ctx:log("info", 5, { a = 1 }) ctx:log(level, "x") ctx:log("warn")',
    'ctx:set("a") ctx:set("a", nil) ctx:set("a", { 1 }, { durable = true }) ctx:set(name, {})',
    'ctx:get("a.b") ctx:get("a", 1) ctx:list_devices() ctx:notify("x", {}) ctx:snapshot({})',
    "ctx:sleep(function() return 1 end)",
    'ctx:invoke("x:y") ctx:invoke("x:y", {}) ctx:restore(before) ctx:notify("x", { title = "y", actions = {} })',
    'local C = { capability = "power", action = "on" } C.action = "x" ctx:command("x:lamp", C)',
    "local secs = 7200 secs = 5 ctx:sleep(secs)",
    "local secs = 7200 for secs = 1, 2 do ctx:sleep(secs) end",
    "local secs = 7200 / 4 ctx:sleep(secs)",
    "local secs = 7200 local function wait(secs) ctx:sleep(secs) end",
    "local secs = 7200 do local secs = 5 ctx:sleep(secs) end",
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
