"""The library for editors documents exactly the available names: those of `ctx`, values, capabilities,
definitions, and Lua."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import orjson
import pytest
from lupa import lua54

from appliance.adapters.dispatch import Status
from appliance.adapters.elgato_lights.adapter import ElgatoAdapter
from appliance.adapters.lua_calls import SCRIPT_LOG_LEVELS
from appliance.adapters.roku_tv.adapter import RokuAdapter
from appliance.errors import ConfigFailed, Invalid
from appliance.home import values
from appliance.home.capabilities import CAPABILITIES
from appliance.home.commands import Command
from appliance.home.model import DeviceKind
from appliance.lua.files.catalog import read_definition
from appliance.lua.running.context import Context
from appliance.lua.running.modes import ModeType
from appliance.lua_worker.ctx_methods import CTX_METHODS
from appliance.scenes import scene_parser
from appliance.tables.checks import Function
from tests.fakes.clock import VirtualClock
from tests.fakes.instant import InstantHome, open_home
from tests.fakes.rows import each_row
from tests.lua import library
from tests.lua.bench import Notes, calls_of, file, open_pool, run

LIBRARY = library.read()
SETTINGS = json.loads((library.ROOT / "config" / ".luarc.json").read_text())

METHODS = {
    name.removeprefix("Context:"): function
    for name, function in LIBRARY.functions.items()
    if name.startswith("Context:")
}

LUA_TYPES = {"string": "string", "LogLevel": "string", "InvokeTarget": "string", "number": "number", "any": "any"}
"""The Lua type of each parameter type. Types that are not listed are Lua tables."""


def test_the_methods_match_ctx() -> None:
    assert set(METHODS) == {*CTX_METHODS, "log"}


def test_the_parameters_match_ctx() -> None:
    for name, method in CTX_METHODS.items():
        assert list(METHODS[name].annotated) == list(METHODS[name].parameters)
        documented = [
            LUA_TYPES.get(each.type, "table") + "?" * each.is_optional for each in METHODS[name].annotated.values()
        ]
        assert documented == list(method.arguments), name


def test_the_levels_and_targets_match() -> None:
    assert LIBRARY.aliases["LogLevel"].replace('"', "").split("|") == list(SCRIPT_LOG_LEVELS)
    offered = {
        f"{kind}:{operation}"
        for kind, adapter in (("elgato_lights", ElgatoAdapter), ("roku_tv", RokuAdapter))
        for operation in adapter.__new__(adapter).operations
    }
    assert set(LIBRARY.words["InvokeTarget"]) == offered


@pytest.fixture
async def context() -> AsyncIterator[Context]:
    """Provide a home with three lamps, one of them in a room and a group."""
    clock = VirtualClock()
    async with open_home(clock) as home:
        _furnish(home)
        yield Context(clock, "scene", "x", calls_of(home, clock))


def _furnish(home: InstantHome) -> None:
    home.registry.put_room("hall", "Hall")
    home.registry.assign_room("lamp:0", "hall")
    home.registry.put_group("all", "All", ["lamp:0"])


COMMAND = {"capability": "power", "action": "on"}

GIVEN: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    ("get_device", ("lamp:0",), "Device"),
    ("list_devices", (None,), "Device"),
    ("get_room", ("hall",), "Room"),
    ("list_rooms", (None,), "Room"),
    ("list_room_devices", ("hall",), "Device"),
    ("get_group", ("all",), "Group"),
    ("list_groups", (None,), "Group"),
    ("list_group_devices", ("all",), "Device"),
    ("command", ("lamp:0", COMMAND), "CommandResult"),
    ("command_group", ("all", COMMAND), "GroupResult"),
)


async def test_the_collector_tracks_no_object_of_a_list(context: Context) -> None:
    """A collection during several lists of 2,000 devices would block the loop."""
    for name in ("list_devices", "list_rooms", "list_groups"):
        assert not any(map(gc.is_tracked, await context.call(name, (None,))))


@pytest.mark.parametrize(("name", "arguments", "type_"), GIVEN)
async def test_results_of_ctx_have_the_fields_of_their_class(
    context: Context, name: str, arguments: tuple[Any, ...], type_: str
) -> None:
    given = orjson.loads(orjson.dumps(await context.call(name, arguments)))
    table = given[0] if isinstance(given, list) else given
    assert set(table) == set(LIBRARY.classes[type_])
    block = library.STUB.read_text().split(f"function Context:{name}(")[0].rsplit("\n\n", 1)[-1]
    returned = re.findall(r"---@return (\w+)(\[\]|\?|)", block)
    assert returned == [(type_, "[]" if isinstance(given, list) else "?" if name.startswith("get_") else "")]


def test_words_of_results_and_kinds_match() -> None:
    assert LIBRARY.classes["CommandResult"]["status"].words == [*Status]
    assert LIBRARY.classes["Device"]["kind"].words == [*DeviceKind]
    names = set(Command.__struct_fields__)
    assert set(LIBRARY.classes["Command"]) == names


TYPES: Mapping[str, str] = {
    "measurement": "Measurement",
    "accumulation": "Accumulation",
    "number": "number",
    "integer": "integer",
    "string": "string",
    "boolean": "boolean",
    "integer_or_string": "integer|string",
    "percentage": "Percentage",
    "rgb_color": "RgbColor",
    "hex_color": "HexColor",
    "xy_color": "XyColor",
    "hs_color": "HsColor",
    "color_temperature": "ColorTemperature",
}
"""Maps each schema type except `enum` to its name in the stub."""


def test_the_capabilities_match() -> None:
    assert list(LIBRARY.words["Capability"]) == list(CAPABILITIES) == list(LIBRARY.classes["Attributes"])
    of_catalog = {action for each in CAPABILITIES.values() for action in each.actions}
    assert set(LIBRARY.words["Action"]) == {*of_catalog, "press"}


def test_custom_attributes_can_be_commanded_and_shown() -> None:
    assert LIBRARY.aliases["CustomCapability"] == "string"
    for name in ("Command", "CommandSpec"):
        assert LIBRARY.classes[name]["capability"].type == "Capability|CustomCapability"
    assert "---@field [string] " in library.STUB.read_text("utf-8")


def test_each_capability_documents_its_actions_and_the_shape_of_its_value() -> None:
    for entry in CAPABILITIES.values():
        assert LIBRARY.words["Capability"][entry.key] == f"{entry.description} {', '.join(entry.actions)}"
        shown = LIBRARY.classes["Attributes"][entry.key]
        assert (shown.is_optional, shown.text) == (True, entry.description)
        if entry.type == "enum":
            assert shown.words == list(entry.values)
        else:
            assert shown.type == TYPES[entry.type]


SAMPLES: Mapping[str, Any] = {"number": 1, "integer": 1, "string": "x", '"kelvin"|"mireds"': "kelvin"}


@each_row("schema", ["measurement", "accumulation", "rgb_color", "xy_color", "hs_color"])
def test_tables_of_values_have_the_fields_that_are_checked(schema: str) -> None:
    _check_shape(values.CHECKS[schema], {name: SAMPLES[each.type] for name, each in _class(schema).items()})


def test_a_colour_temperature_has_the_fields_and_the_range_that_are_checked() -> None:
    _check_shape(values.CHECKS["color_temperature"], {"value": 3000, "unit": "kelvin"})
    kelvin, mireds = values.KELVIN_RANGE, values.MIRED_RANGE
    text = f"{kelvin[0]} to {kelvin[1]} kelvin, or {mireds[0]} to {mireds[1]} mireds"
    assert text in _class("color_temperature")["value"].text
    assert set(_class("color_temperature")) == {"value", "unit"}


def _class(schema: str) -> dict[str, library.Field]:
    return LIBRARY.classes[TYPES[schema]]


def _check_shape(check: Callable[[Any], Any], sample: dict[str, Any]) -> None:
    assert check({**sample, "more": 1}) == sample
    for name in sample:
        with pytest.raises(Invalid, match=rf"lacks the field {name}|with .*\b{name}\b"):
            check({key: value for key, value in sample.items() if key != name})


def test_the_fields_of_a_scene_match_the_reader() -> None:
    def faults(described: dict[str, Any]) -> list[str]:
        with pytest.raises(ConfigFailed) as failed:
            read_definition(described, file("return {}"), scene_parser(8))
        return [fault.message for fault in failed.value.faults]

    stub = LIBRARY.classes["Scene"]
    [unknown] = faults({"id": "x", "name": "X", "execute": Function(1), "0": 1})
    assert set(unknown.split("use one of ")[1].split(", ")) == set(stub)
    needed = {message.split(" ")[0] for message in faults({})}
    assert needed == {name for name, each in stub.items() if not each.is_optional}


def test_the_modes_match() -> None:
    assert list(LIBRARY.words["ModeType"]) == [*ModeType]
    with pytest.raises(ConfigFailed, match="has no field 0"):
        described = {"id": "x", "name": "X", "execute": Function(1), "mode": {"type": "queued", "max": 1, "0": 1}}
        read_definition(described, file("return {}"), scene_parser(8))
    assert set(LIBRARY.classes["ModeTable"]) == {"type", "max"}


WALK = """
local names = {}
for name, value in pairs(_G) do
  if type(value) == 'function' then names[#names + 1] = name end
  if type(value) == 'table' and name ~= '_G' then
    for inner, each in pairs(value) do
      if type(each) == 'function' then names[#names + 1] = name .. '.' .. inner end
    end
  end
end
"""


async def test_kept_and_removed_functions_of_lua_are_documented() -> None:
    plain = lua54.LuaRuntime(register_eval=False, register_builtins=False)
    plain.execute("python = nil")
    stock = set(plain.execute(f"{WALK} return table.concat(names, ' ')").split())
    async with open_pool() as pool:
        kept = set((await run(pool, f"{WALK} print(table.concat(names, ' '))")).printed[0].split())
    documented = {name: function for name, function in LIBRARY.functions.items() if not name.startswith("Context:")}
    off = {name for name, state in SETTINGS["runtime.builtin"].items() if state == "disable"}
    assert kept <= stock

    def is_documented(name: str) -> bool:
        """Return whether the editor knows the function, from this stub or from the editor's own library."""
        if name in documented:
            return not documented[name].is_deprecated
        return ("package" if name == "require" else name.split(".", maxsplit=1)[0]) not in off

    assert {name for name in stock | set(documented) if is_documented(name)} == kept
    assert {name for name, function in documented.items() if function.is_deprecated} <= stock - kept


async def test_the_editor_finds_modules_like_require() -> None:
    assert SETTINGS["runtime.path"] == ["scripts/?.lua"]
    assert SETTINGS["runtime.version"] == lua54.LuaRuntime(register_eval=False).globals()._VERSION
    assert [library.ROOT / "config" / folder for folder in SETTINGS["workspace.library"]] == [library.STUB.parent]


async def test_the_stub_compiles_and_is_never_run() -> None:
    text = library.STUB.read_text()
    assert text.startswith("---@meta\n")
    async with open_pool() as pool:
        assert (await run(pool, f"print(load([==[{text}]==]) ~= nil)", Notes())).printed == ["true"]
