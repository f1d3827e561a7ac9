"""Virtual devices: faults of a section, the effect of each command, observations, and restarts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from appliance import config
from appliance.adapters.base import HookRequest
from appliance.adapters.virtual.adapter import MAX_LARGE_BYTES, MAX_SMALL_BYTES, VirtualAdapter
from appliance.byte_budget import JSON_VALUE_BYTES
from appliance.clock import Clock
from appliance.errors import ConfigFailed, Invalid, LaresError
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.command_specs import check_offered
from appliance.home.commands import Command
from appliance.home.registry import Registry
from tests.fakes import process
from tests.fakes.app import open_app
from tests.fakes.context import context_of
from tests.fakes.lua import automation, write
from tests.fakes.patience import until_async

HOME = """
[adapters.virtual]
[[adapters.virtual.devices]]
id = "all"
name = "Everything"
class = "plug"
options = { "custom.virtual.mode" = ["eco", "boost"], media_source = ["hdmi1", "tv"] }
[adapters.virtual.devices.attributes]
power = "off"
brightness = 50
color_temperature = { value = 2900, unit = "kelvin" }
color_rgb = { r = 1, g = 2, b = 3 }
color_mode = "white"
effect = "flash"
led_indication = false
muted = false
volume = 95
media_playback = "idle"
media_source = "tv"
lock = "locked"
door = "closed"
garage_door = "opening"
cover_position = 40
energy_total = { value = 3.5, unit = "kWh", period = "year" }
target_temperature = { value = 20, unit = "°C" }
contact = "closed"
presence = true
"custom.virtual.mode" = "eco"
"custom.virtual.count" = 3
"custom.virtual.facts" = { a = 1 }
[[adapters.virtual.devices]]
id = "button"
kind = "Sensor"
attributes = {}
[[adapters.virtual.devices]]
id = "late"
attributes = { contact = "closed" }
"""
WARM = {"value": 2400, "unit": "kelvin"}
ALL = "virtual:all"

COMMANDS: tuple[tuple[str, str, Any, Any], ...] = (
    ("power", "on", None, "on"),
    ("power", "toggle", None, "off"),
    ("power", "toggle", None, "on"),
    ("brightness", "set", 7, 7),
    ("brightness", "increase", 20, 27),
    ("brightness", "decrease", 90, 0),
    ("volume", "increase", 10, 100),
    ("color_temperature", "set", WARM, WARM),
    ("color_temperature", "increase", {"value": 100, "unit": "kelvin"}, {"value": 2500, "unit": "kelvin"}),
    ("color_temperature", "increase", {"value": 5, "unit": "mireds"}, {"value": 405, "unit": "mireds"}),
    ("color_temperature", "decrease", {"value": 300, "unit": "mireds"}, {"value": 153, "unit": "mireds"}),
    ("color_rgb", "set", {"r": 9, "g": 8, "b": 7}, {"r": 9, "g": 8, "b": 7}),
    ("effect", "set", "strobe", "strobe"),
    ("effect", "stop", None, "none"),
    ("led_indication", "set", True, True),
    ("led_indication", "get", None, True),
    ("muted", "mute", None, True),
    ("muted", "unmute", None, False),
    ("media_playback", "next", None, "idle"),
    ("media_playback", "play", None, "playing"),
    ("media_playback", "pause", None, "paused"),
    ("media_playback", "stop", None, "stopped"),
    ("media_source", "set", "hdmi1", "hdmi1"),
    ("lock", "unlock", None, "unlocked"),
    ("lock", "lock", None, "locked"),
    ("garage_door", "stop", None, "stopped"),
    ("garage_door", "close", None, "closed"),
    ("garage_door", "stop", None, "closed"),
    ("door", "open", None, "open"),
    ("cover_position", "stop", None, 40),
    ("cover_position", "open", None, 100),
    ("cover_position", "close", None, 0),
    ("cover_position", "set", 30, 30),
    ("energy_total", "reset", None, {"value": 0, "unit": "kWh", "period": "year"}),
    ("target_temperature", "set", {"value": 21.5, "unit": "°C"}, {"value": 21.5, "unit": "°C"}),
    ("custom.virtual.mode", "set", "boost", "boost"),
    ("custom.virtual.count", "set", 4, 4),
)

REFUSED: tuple[tuple[str, str, Any, str], ...] = (
    ("contact", "get", None, "does not offer contact get"),
    ("media_source", "set", "vga", "must be one of hdmi1, tv for this device"),
    ("custom.virtual.mode", "set", "eko", "must be one of eco, boost for this device"),
    ("custom.virtual.count", "set", "4", "must be a number"),
    ("custom.virtual.facts", "set", "4", "does not offer custom.virtual.facts set"),
    ("target_temperature", "set", {"value": 70, "unit": "°F"}, "unknown unit °F; write °C"),
)


class Home:
    """A registry with the devices of one section, and the published events."""

    def __init__(self, clock: Clock) -> None:
        self.events: list[events.DeviceEvent] = []
        self.bus = Bus()
        self.registry = Registry(self.bus, clock)
        self.bus.listen(self.events.append, events.DeviceEvent)  # type: ignore[arg-type]
        settings = config.parse(HOME, "default.toml", {}).adapters["virtual"]
        context = context_of("virtual", None, clock, registry=self.registry, bus=self.bus)
        self.adapter = VirtualAdapter(context, settings)

    def shown(self, attribute: str) -> Any:
        """Return an attribute of the first device."""
        return self.registry.get_device(ALL).attributes[attribute]


@asynccontextmanager
async def running() -> AsyncIterator[Home]:
    """Run the adapter, and publish its devices."""
    home = Home(Clock())
    work = asyncio.create_task(home.adapter.run())
    await home.adapter.publish.has_started.wait()
    yield home
    work.cancel()


class SlowClock(Clock):
    """A clock that advances at each reading, so that long work pauses after each step."""

    time = 0.0

    def monotonic(self) -> float:
        self.time += 1.0
        return self.time

    async def sleep(self, _: float) -> None:
        """Let other tasks run."""
        await asyncio.sleep(0)


async def test_a_hook_that_comes_before_the_devices_waits_for_them() -> None:
    home = Home(SlowClock())
    work = asyncio.create_task(home.adapter.run())
    await asyncio.sleep(0)
    data = {"attributes": {"contact": "open"}}
    await home.adapter.hook(HookRequest(hook="device:virtual:late", method="POST", data=data))
    assert home.registry.get_device("virtual:late").attributes["contact"] == "open"
    work.cancel()


async def test_every_command_becomes_the_state_and_other_commands_are_refused() -> None:
    async with running() as home:
        specs = home.registry.get_device(ALL).commands or ()
        stated = {(spec.capability, action) for spec in specs for action in spec.actions}
        assert stated >= {row[:2] for row in COMMANDS}
        assert not {row[0] for row in stated} & {"contact", "presence", "custom.virtual.facts"}
        for capability, action, value, after in COMMANDS:
            command = Command(capability=capability, action=action, value=value)
            assert [each.error for each in await home.adapter.command_many([ALL], command)] == [None]
            assert home.shown(capability) == after, (capability, action)
        assert home.shown("color_mode") == "rgb"
        for capability, action, value, sentence in REFUSED:
            with pytest.raises(LaresError, match=sentence):
                check_offered(ALL, specs, Command(capability=capability, action=action, value=value))


MANY = "[adapters.virtual]\n" + "".join(
    f'[[adapters.virtual.devices]]\nid = "d{number}"\nattributes = {{ power = "off" }}\n' for number in range(16)
)


async def test_concurrent_commands_share_a_write_and_those_to_one_device_keep_their_order(tmp_path: Path) -> None:
    adapters = config.parse(MANY, "default.toml", {}).adapters
    async with open_app(data_dir=tmp_path, adapters=adapters) as app:
        ids = [f"virtual:d{number}" for number in range(16)]
        before = app.hub.store.document.figures()["sequence"]
        devices = app.hub.registry.find_devices([*ids, ids[0], ids[0]])
        command = Command(capability="power", action="toggle")
        await asyncio.gather(*(app.hub.dispatcher.send([each], command, "device") for each in devices))
        assert app.hub.store.document.figures()["sequence"] - before <= 4
        assert {each.attributes["power"] for each in app.hub.registry.find_devices(ids)} == {"on"}


OBSERVED_IN_VAIN: tuple[tuple[Any, str], ...] = (
    ({}, 'needs a device_id like "virtual:all"'),
    ({"device_id": ALL}, "needs attributes, an event, or both"),
    ({"device_id": "virtual:al", "event": "single"}, "device 'virtual:al' not found"),
    ({"device_id": ALL, "evnt": "single"}, "did you mean event?"),
    ({"device_id": ALL, "event": 5}, "5 is not a valid event name"),
    ({"device_id": ALL, "event": ""}, "the name of an event must have 1 to 256 characters, not 0"),
    ({"device_id": ALL, "event": "x", "data": 5}, "must be an object"),
    ({"device_id": ALL, "event": "x", "data": 0}, "must be an object"),
    (
        {"device_id": ALL, "event": "x", "data": [], "attributes": 5},
        "attributes must be .*; and the data of",
    ),
    (
        {"device_id": ALL, "event": 5, "attributes": {"contact": "ajar"}},
        "contact must be .*; and 5 is not a valid event name",
    ),
    ({"device_id": ALL, "attributes": []}, "attributes must be an object"),
    ({"device_id": ALL, "attributes": {"contct": "open"}}, "did you mean contact?"),
    ({"device_id": ALL, "attributes": {"state": "offline"}}, "is not an attribute of 'all'"),
    (
        {"device_id": ALL, "attributes": {"target_temperature": {"value": 50, "unit": "parsec"}}},
        "target_temperature has the unit 'parsec', which is not a unit of target_temperature; use one of °C, °F, K",
    ),
    (
        {"device_id": ALL, "attributes": {"target_temperature": {"value": -400, "unit": "°C"}}},
        "target_temperature must be from -273.15 to 2000 °C, not -400",
    ),
    (
        {"device_id": ALL, "attributes": {f"custom.a.v{number}": 1 for number in range(2_500)}},
        "; and 2497 further names are not attributes of 'all'",
    ),
    (
        {
            "device_id": ALL,
            "attributes": {"contact": "ajar", "custom.virtual.mode": "x", "custom.virtual.count": "1"},
        },
        r"contact must be .*; and custom\.virtual\.mode must be .*; and custom\.virtual\.count must be a number",
    ),
)


LARGE = "[adapters.virtual]\n" + "".join(
    f'[[adapters.virtual.devices]]\nid = "d{number}"\nattributes = {{ "custom.virtual.facts" = {{ a = 1 }} }}\n'
    for number in range(3)
)


async def test_large_values_that_are_being_stored_count(tmp_path: Path) -> None:
    adapters = config.parse(LARGE, "default.toml", {}).adapters
    async with open_app(data_dir=tmp_path, adapters=adapters) as app:
        observe = partial(app.hub.dispatcher.invoke, "virtual:observe")
        value = {"custom.virtual.facts": {"a": "x" * (MAX_LARGE_BYTES - 1000)}}
        asked = [observe({"device_id": f"virtual:d{number}", "attributes": value}) for number in range(3)]
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(each) for each in results] == [type(None), Invalid, Invalid]


async def test_the_large_values_of_a_section_have_a_limit() -> None:
    async with running() as home:
        observe, name = home.adapter.operations["observe"], "custom.virtual.facts"

        async def show(size: int) -> None:
            await observe({"device_id": ALL, "attributes": {name: {"a": "x" * size}}})

        await show(MAX_LARGE_BYTES - 1000)
        with pytest.raises(Invalid, match="shorten a value first"):
            await show(MAX_LARGE_BYTES)
        assert len(home.shown(name)["a"]) == MAX_LARGE_BYTES - 1000
        await home.adapter.command_many([ALL], Command(capability="power", action="toggle"))
        await show(MAX_SMALL_BYTES * 2)
        await show(5)


async def test_the_limit_for_large_values_counts_the_memory_of_decoded_values() -> None:
    most = MAX_LARGE_BYTES // JSON_VALUE_BYTES // 2
    async with running() as home:
        observe = home.adapter.operations["observe"]

        async def show(count: int) -> None:
            await observe({"device_id": ALL, "attributes": {"custom.virtual.facts": {"a": [[]] * count}}})

        await show(most - 1000)
        with pytest.raises(Invalid, match="shorten a value first"):
            await show(most + 1)


async def test_an_observation_sets_attributes_without_commands_and_a_wrong_one_sets_nothing() -> None:
    async with running() as home:
        observe = home.adapter.operations["observe"]
        before = home.registry.list_devices()
        for payload, sentence in OBSERVED_IN_VAIN:
            with pytest.raises(LaresError, match=sentence):
                await observe(payload)
        assert home.registry.list_devices() is before and not home.events
        await observe(
            {"device_id": ALL, "attributes": {"contact": "open", "power": "on"}, "event": "a", "data": {"b": 1}}
        )
        await observe({"device_id": "virtual:button", "event": "single"})
        assert (home.shown("contact"), home.shown("power")) == ("open", "on")
        assert [(each.device_id, each.event, each.data) for each in home.events] == [
            (ALL, "a", {"b": 1}),
            ("virtual:button", "single", {}),
        ]


WRONG = """
[adapters.virtual]
devces = 3
[[adapters.virtual.devices]]
id = "lamp"
nme = "Lamp"
kind = "Lamp"
class = "Big Lamp"
attributes = { powr = "off", brightness = 500, state = "online" }
[[adapters.virtual.devices]]
attributes = { custom.virtual.x = 1 }
[[adapters.virtual.devices]]
id = "door"
attributes = { power = "off", motion = "clear" }
options = { power = ["of", "on"], motion = ["clear"] }
[[adapters.virtual.devices]]
id = "five"
attributes = 5
options = { a = [] }
[[adapters.virtual.devices]]
id = "plug"
attributes = { power_consumption = { value = 1, unit = "°C" } }
[adapters.v2]
type = "virtual"
devices = 3
[adapters.v3]
type = "virtual"
[[adapters.v3.devices]]
id = "a"
attributes = {}
[[adapters.v3.devices]]
id = "a"
attributes = {}
"""

FAULTS = (
    (3, "adapters.virtual.devces is not a key of Lares"),
    (6, "adapters.virtual.devices[1].nme is not a key of Lares; did you mean name?"),
    (7, "adapters.virtual.devices[1].kind must be one of Sensor, Light, Switch, Virtual"),
    (8, "adapters.virtual.devices[1].class must be a word"),
    (9, "adapters.virtual.devices[1].attributes contains powr, which is neither in the catalog"),
    (10, "adapters.virtual.devices[2].id is missing"),
    (11, "adapters.virtual.devices[2].attributes contains custom, which must be written in quotes"),
    (
        12,
        "adapters.virtual.devices[3] sets power to 'off', which is not one of its options (of, on); and has options",
    ),
    (18, "adapters.virtual.devices[4].attributes must be a table"),
    (19, "adapters.virtual.devices[4].options must list the options of a as an array of words"),
    (25, "adapters.v2.devices must be a list of tables, not 3"),
    (26, "adapters.v3 uses these ids for more than one device: a"),
)


def test_unusual_values_of_earlier_versions_are_warnings_and_accept_reports_in_their_unit() -> None:
    values = 'power_consumption = { value = 1, unit = "VA" }, temperature = { value = 20, unit = "°C" }'
    text = f'[adapters.virtual]\n[[adapters.virtual.devices]]\nid = "plug"\nattributes = {{ {values} }}\n'
    found = config.parse(text, "default.toml", {})
    assert found.warnings == (
        "default.toml:2: adapters.virtual.devices contains 'plug', whose power_consumption has the unit 'VA', "
        "which is not a unit of power_consumption; use one of W, kW, mW, MW",
    )
    [plug] = found.adapters["virtual"].devices
    report = {"power_consumption": {"value": 2, "unit": "VA"}}
    assert plug.check(report) == report
    with pytest.raises(Invalid, match="temperature has the unit 'VA'"):
        plug.check({"temperature": {"value": 2, "unit": "VA"}})


def test_every_error_of_a_section_has_its_line() -> None:
    with pytest.raises(ConfigFailed) as failed:
        config.parse(WRONG, "default.toml", {})
    faults = failed.value.faults
    assert [fault.line for fault in faults] == [line for line, _ in FAULTS]
    for fault, (_, sentence) in zip(faults, FAULTS, strict=True):
        assert fault.message.startswith(sentence)


def test_a_table_in_place_of_a_list_of_tables_names_its_own_section() -> None:
    with pytest.raises(ConfigFailed) as failed:
        config.parse('[adapters.zz]\ntype = "virtual"\n[adapters.zz.devices]\nid = "a"\n', "default.toml", {})
    [fault] = failed.value.faults
    assert fault.message == "adapters.zz.devices must be a list of tables: [[adapters.zz.devices]]"


@pytest.mark.slow
async def test_confirmed_commands_survive_a_kill(tmp_path: Path) -> None:
    process.configure(tmp_path, HOME)
    async with process.running(tmp_path) as hub:
        await hub.ready()
        for capability, action, value, _ in COMMANDS:
            body = {"capability": capability, "action": action, **({} if value is None else {"value": value})}
            assert await hub.post(f"/devices/{ALL}/command", **body) == 200, body
        seen = {"device_id": ALL, "attributes": {"contact": "open"}, "event": "single"}
        assert await hub.ask("POST", "/adapters/virtual/operations/observe", seen) == (
            200,
            {"status": "ok", "result": None},
        )
        shown = (await hub.get(f"/devices/{ALL}"))["attributes"]
        await hub.kill()
    process.configure(tmp_path, HOME.replace('["eco", "boost"]', '["eco"]').replace('count" = 3', 'count" = "three"'))
    async with process.running(tmp_path) as hub:
        await hub.ready()
        found = (await hub.get(f"/devices/{ALL}"))["attributes"]
    assert found == {**shown, "custom.virtual.mode": "eco", "custom.virtual.count": "three"}
    assert found["contact"] == "open"


LEAK = """
[adapters.virtual]
devices = [{ id = "leak", kind = "Sensor", attributes = { water_leak = false, occupancy = "unoccupied" } }]
"""


@pytest.mark.slow
@pytest.mark.parametrize(("attribute", "value"), [("water_leak", True), ("occupancy", "occupied")])
@pytest.mark.parametrize("wait", ["duration_secs = 3", "debounce_secs = 3", "duration_secs = 3, at_start = true"])
async def test_a_wait_for_a_virtual_device_survives_a_kill(
    wait: str, attribute: str, value: str | bool, tmp_path: Path
) -> None:
    process.configure(tmp_path, LEAK)
    equals = json.dumps(value)
    trigger = (
        f'{{ type = "device_state_change", device_id = "*", attribute = "{attribute}", equals = {equals}, {wait} }}'
    )
    write(tmp_path, {"automations/a.lua": automation("a", trigger, 'ctx:set("fired", true)')})
    async with process.running(tmp_path) as hub:
        await hub.ready()
        seen = {"device_id": "virtual:leak", "attributes": {attribute: value}}
        assert await hub.post("/adapters/virtual/operations/observe", **seen) == 200
        assert await hub.post("/rooms", id="later", name="A later write") == 200
        await hub.kill()
    async with process.running(tmp_path) as hub:

        async def has_fired() -> bool:
            return {"name": "fired", "value": True} in await hub.get("/variables")

        await until_async(has_fired)
