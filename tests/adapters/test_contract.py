"""Each adapter kind fulfils the contract with its simulator."""

from __future__ import annotations

import asyncio
import gc
import importlib
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.base import Adapter
from appliance.adapters.elgato_lights.kind import ELGATO_LIGHTS
from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight
from appliance.adapters.kind import AdapterKind
from appliance.adapters.kinds import LUA_KIND
from appliance.adapters.matter.kind import MATTER
from appliance.adapters.matter.simulator import PLUG, MatterSimulator, simulated_node
from appliance.adapters.roku_tv.kind import ROKU_TV
from appliance.adapters.roku_tv.simulator import STANDBY
from appliance.adapters.simulated_device import Faults
from appliance.adapters.wled.kind import WLED, Wled
from appliance.errors import LaresError, Unreachable
from appliance.health import AdapterStatus
from tests.adapters.contract import AdapterContract, ReadingContract, Subject, trial
from tests.adapters.lua_kinds import sources
from tests.adapters.lua_kinds.bench import open_kinds, section
from tests.adapters.lua_kinds.bundled import BUNDLED
from tests.adapters.meter import METER, MeterSimulator
from tests.adapters.mqtt import test_contract as mqtt
from tests.adapters.page import make_importable
from tests.fakes.patience import until
from tests.fakes.wled import WledSimulator, segment

with tempfile.TemporaryDirectory(prefix="lares-page-") as folder:
    make_importable(Path(folder))
    RELAY: AdapterKind = importlib.import_module("appliance.adapters.relay.kind").RELAY
    for module in ("adapter", "simulator"):
        importlib.import_module(f"appliance.adapters.relay.{module}")


async def _dim(vendor: WledSimulator) -> None:
    vendor.state["seg"][1].update(on=True, bri=51)
    await vendor.push()


class TestElgatoLights(AdapterContract):
    subject = Subject(
        name="desk",
        kind=ELGATO_LIGHTS,
        simulate=lambda: LightSimulator(lights=[SimulatedLight(temperature=200), SimulatedLight(temperature=300)]),
        device="light:0",
        fewer=lambda vendor: vendor.lights.pop(),
        more=lambda vendor: vendor.lights.append(SimulatedLight(temperature=300)),
        change=lambda vendor: setattr(vendor.lights[0], "brightness", 77),
        changed=("brightness", 77),
    )


class TestMeter(ReadingContract):
    """A read-only device that pushes values and sends events, and whose bridge can lose contact with the device."""

    subject = Subject(
        name="house",
        kind=METER,
        device="meter",
        change=lambda vendor: vendor.show(watts=7),
        changed=("power_consumption", {"value": 7, "unit": "W"}),
        is_connected=lambda vendor: vendor.streams,
        happen=lambda vendor: vendor.press(),
        event="single",
        lose=lambda vendor: vendor.show(is_reached=False),
        find=lambda vendor: vendor.show(is_reached=True),
    )


class TestRokuTv(AdapterContract):
    subject = Subject(
        name="den",
        kind=ROKU_TV,
        device="tv",
        change=lambda vendor: setattr(vendor, "power_mode", STANDBY),
        changed=("power", "off"),
    )


class TestWled(AdapterContract):
    subject = Subject(
        name="strip",
        kind=WLED,
        simulate=WledSimulator,
        settings=lambda vendor: Wled(base_url=vendor.url, poll_interval_secs=2),
        device="segment:1",
        fewer=lambda vendor: vendor.state["seg"].pop(0),
        more=lambda vendor: vendor.state["seg"].insert(0, segment(0)),
        change=_dim,
        changed=("brightness", 20),
        is_connected=lambda vendor: vendor._sockets,
    )


class TestMatter(AdapterContract):
    subject = Subject(
        name="matter",
        kind=MATTER,
        simulate=MatterSimulator,
        device="sim-1:1",
        is_polled=False,
        speed=5,
        fewer=lambda vendor: asyncio.ensure_future(vendor.remove(2)),
        more=lambda vendor: asyncio.ensure_future(vendor.add(simulated_node(2, "Simulated plug", PLUG))),
        change=lambda vendor: vendor.set(1, "1/6/0", True),
        lose=lambda vendor: vendor.add({**vendor.nodes[1], "available": False}),
        find=lambda vendor: vendor.add({**vendor.nodes[1], "available": True}),
    )


IN_LUA: Mapping[str, Mapping[str, Any]] = {
    "shelly_one": {"change": lambda vendor: vendor.status["relays"][0].update(ison=True)},
    "shelly_two": {
        "fewer": lambda vendor: vendor.status.pop("switch:2"),
        "more": lambda vendor: vendor.status.update({"switch:2": {"id": 2, "output": False}}),
    },
    "tasmota_http": {},
    "homewizard": {},
    "homewizard_meter": {},
    "hue": {
        "fewer": lambda vendor: vendor.remove(2),
        "more": lambda vendor: vendor.add(2),
        "change": lambda vendor: vendor.show(1, on={"on": True}),
        "is_connected": lambda vendor: vendor.streams,
        "happen": lambda vendor: vendor.press(1),
        "event": "single",
        "lose": lambda vendor: vendor.reach(1, "connectivity_issue"),
        "find": lambda vendor: vendor.reach(1, "connected"),
    },
    "daikin": {
        "change": lambda vendor: vendor.control.update(stemp="19.5"),
        "changed": ("target_temperature", {"value": 19.5, "unit": "°C"}),
    },
    "sonos": {"change": lambda vendor: vendor.shows.update(CurrentVolume="30"), "changed": ("volume", 30)},
    "fronius": {
        "change": lambda vendor: vendor.site.update(P_Grid=7.5),
        "changed": ("custom.fronius.grid", {"value": 7.5, "unit": "W"}),
    },
    "open_meteo": {},
    "tibber": {
        "change": lambda vendor: vendor.prices["current"].update(level="CHEAP"),
        "changed": ("custom.tibber.level", "CHEAP"),
    },
    "awattar": {
        "change": lambda vendor: vendor.set_prices(1, 2),
        "changed": ("custom.awattar.price", {"value": 1.0, "unit": "ct/kWh"}),
    },
    "fritzbox": {"change": lambda vendor: vendor.active.update({sources.BEN: "1"}), "changed": ("presence", True)},
}
"""The bundled kinds with devices, and the features of their vendors."""

for row, can in IN_LUA.items():
    suite = AdapterContract if BUNDLED[row].commands else ReadingContract
    name = f"TestInLua_{row}"
    globals()[name] = pytest.mark.slow(type(name, (suite,), {"subject": BUNDLED[row].subject(**can)}))


def test_each_bundled_kind_runs_through_the_suite() -> None:
    assert {*IN_LUA, "ollama"} == {*BUNDLED}


METER_IN_LUA = """
local function device(values)
  return { id = "meter", kind = "Sensor", name = "Meter", state = values.is_reached and "online" or "unavailable",
    attributes = { power_consumption = { value = values.watts, unit = "W" } } }
end
return {
  name = "Meter",
  poll = function(ctx)
    return { device(ctx:fetch("/meter", "watts")) }
  end,
  listen = { path = "/stream", kind = "sse", receive = function(ctx, message)
    if message.event == "button" then return { events = { { id = "meter", event = message.data } } } end
    return { devices = { device(message.data) } }
  end },
}"""
STRIP_IN_LUA = """
local function devices(state)
  local found = {}
  for _, each in ipairs(state.seg) do
    found[#found + 1] = { id = "segment:" .. each.id, kind = "Light", name = "Segment " .. each.id,
      attributes = { power = each.on and "on" or "off", brightness = math.floor(each.bri / 2.55 + 0.5) },
      commands = { "power", "brightness" } }
  end
  return found
end
return {
  name = "Strip",
  poll = function(ctx)
    return devices(ctx:fetch("/json/si", "state").state)
  end,
  listen = { path = "/ws", receive = function(ctx, message) return { devices = devices(message.state) } end },
  command = function(ctx, device, command)
    local on = command.action == "on" or command.action == "toggle" and device.attributes.power == "off"
    local segment = { id = tonumber(device.id:match("%d+")), on = on }
    ctx:http { method = "POST", path = "/json/state", json = { seg = { segment } } }
  end,
}"""


@pytest.mark.slow
class TestMeterInLua(ReadingContract):
    """The meter in Lua. The vendor pushes server-sent events, and the bridge can lose contact with the meter."""

    subject = replace(
        TestMeter.subject,
        kind=LUA_KIND,
        simulate=MeterSimulator,
        settings=lambda vendor: section("own", {"base_url": vendor.url, "poll_interval_secs": 1}, "house"),
        open_kinds=partial(open_kinds, text=METER_IN_LUA),
    )


@pytest.mark.slow
class TestStripInLua(AdapterContract):
    """The strip in Lua. The vendor pushes over a WebSocket."""

    subject = replace(
        TestWled.subject,
        kind=LUA_KIND,
        simulate=WledSimulator,
        settings=lambda vendor: section("own", {"base_url": vendor.url, "poll_interval_secs": 1}, "strip"),
        open_kinds=partial(open_kinds, text=STRIP_IN_LUA),
    )


FAULTS: tuple[dict[str, Any], ...] = (
    {"status": 500},
    {"body": b"{"},
    {"body": b"{}"},
    {"body": b"[]"},
    {"torn": 999},
    {"drop": 999},
)


@pytest.mark.slow
class TestOllama:
    """The adapter for a language model, written in Lua. The adapter has no devices, and returns each error to the
    callers until the fault ends."""

    async def test_each_fault_is_a_sentence_and_passes(self) -> None:
        async with trial(BUNDLED["ollama"].subject()) as it:
            for fault in FAULTS:
                it.vendor.faults = Faults(**fault)
                with pytest.raises(LaresError) as failed:
                    await it.runner.invoke("chat", {"prompt": "Rain?"})
                assert "attempt to" not in str(failed.value), fault
                it.vendor.faults = Faults()
                assert await it.runner.invoke("chat", {"prompt": "Rain?"}) == it.vendor.reply
            await it.vendor.unplug()
            with pytest.raises(Unreachable):
                await it.runner.invoke("chat", {"prompt": "Rain?"})
            await until(lambda: it.status is AdapterStatus.DEGRADED)
            await it.vendor.plug_in()
            await until(lambda: it.status is AdapterStatus.RUNNING)


class TestThePage(AdapterContract):
    """The example of docs/adapters.md, exactly as on the page."""

    subject = Subject(
        name="boiler",
        kind=RELAY,
        device="relay",
        change=lambda vendor: setattr(vendor, "is_on", True),
    )


@pytest.mark.parametrize(
    "contract", [TestElgatoLights, TestRokuTv, TestWled, TestMatter, TestStripInLua, mqtt.TestMqtt]
)
async def test_an_ended_adapter_is_freed_without_a_garbage_collection(contract: type[AdapterContract]) -> None:
    """New devices exclude all existing objects from collections, so a reference cycle could keep an adapter."""
    gc.collect()
    gc.disable()
    try:
        async with trial(contract.subject) as it:
            assert await it.succeeds("on")
            parts = [weakref.ref(each) for each in _list_parts(it.runner.adapter)]
        del it
        await until(lambda: not [part() for part in parts if part() is not None])
    finally:
        gc.enable()


def _list_parts(adapter: Adapter | None) -> Sequence[object]:
    """Return the adapter and the objects that it consists of: its attributes, and their attributes, whose classes are
    in the package of its kind."""
    package = type(adapter).__module__.rpartition(".")[0]
    parts: list[object] = [adapter]
    for part in parts:
        for each in getattr(part, "__dict__", {}).values():
            is_own = type(each).__module__.startswith(package) and type(each).__weakrefoffset__ > 0
            if is_own and not isinstance(each, Enum) and not any(each is other for other in parts):
                parts.append(each)
    return parts
