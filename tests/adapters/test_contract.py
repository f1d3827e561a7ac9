"""Every kind of adapter keeps the contract, against its simulator."""

from __future__ import annotations

import asyncio
import importlib
import tempfile
from pathlib import Path

import pytest

from appliance.adapters.elgato_lights.kind import ELGATO_LIGHTS
from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight
from appliance.adapters.kind import AdapterKind
from appliance.adapters.kinds import LUA_KIND
from appliance.adapters.matter.kind import MATTER
from appliance.adapters.matter.simulator import PLUG, MatterSimulator, simulated_node
from appliance.adapters.roku_tv.kind import ROKU_TV
from appliance.adapters.roku_tv.simulator import STANDBY
from appliance.adapters.wled.kind import WLED
from appliance.adapters.wled.simulator import WledSimulator, segment
from tests.adapters.contract import AdapterContract, ReadingContract, Subject
from tests.adapters.lua_kinds.bench import open_kinds, section
from tests.adapters.lua_kinds.simulators import (
    HomeWizardSocket,
    HueBridge,
    JsonVendor,
    ShellyOne,
    ShellyTwo,
    Tasmota,
)
from tests.adapters.meter import METER
from tests.adapters.page import make_importable

with tempfile.TemporaryDirectory(prefix="lares-page-") as folder:
    make_importable(Path(folder))
    RELAY: AdapterKind = importlib.import_module("appliance.adapters.relay.kind").RELAY
    for module in ("adapter", "simulator"):
        importlib.import_module(f"appliance.adapters.relay.{module}")


async def _dim(vendor: WledSimulator) -> None:
    vendor.state["seg"][1].update(on=True, bri=51)
    await vendor.push()


class TestElgatoLights(AdapterContract):
    """Two lights at one address."""

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
    """A device that is only read, which pushes, tells events, and may be out of reach of its bridge."""

    subject = Subject(
        name="house",
        kind=METER,
        device="meter",
        change=lambda vendor: vendor.show(watts=7),
        changed=("power_consumption", {"value": 7, "unit": "W"}),
        is_heard=lambda vendor: vendor.streams,
        happen=lambda vendor: vendor.press(),
        event="single",
        lose=lambda vendor: vendor.show(is_reached=False),
        find=lambda vendor: vendor.show(is_reached=True),
    )


class TestRokuTv(AdapterContract):
    """A TV."""

    subject = Subject(
        name="den",
        kind=ROKU_TV,
        device="tv",
        change=lambda vendor: setattr(vendor, "power_mode", STANDBY),
        changed=("power", "off"),
    )


class TestWled(AdapterContract):
    """A strip of two segments."""

    subject = Subject(
        name="strip",
        kind=WLED,
        device="segment:1",
        fewer=lambda vendor: vendor.state["seg"].pop(0),
        more=lambda vendor: vendor.state["seg"].insert(0, segment(0)),
        change=_dim,
        changed=("brightness", 20),
        is_heard=lambda vendor: vendor._sockets,
    )


class TestMatter(AdapterContract):
    """A lamp and a plug behind one server."""

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


@pytest.mark.slow
class TestShellyOfTheFirstGeneration(AdapterContract):
    """A plug, in Lua."""

    subject = Subject(
        name="plug",
        kind=LUA_KIND,
        device="switch:0",
        simulate=ShellyOne,
        settings=lambda vendor: section("shelly", {"base_url": vendor.url, "poll_interval_secs": 1}, "plug"),
        open_kinds=open_kinds,
    )


@pytest.mark.slow
class TestShellyOfTheSecondGeneration(AdapterContract):
    """Three relays, in Lua."""

    subject = Subject(
        name="pro",
        kind=LUA_KIND,
        device="switch:1",
        simulate=ShellyTwo,
        settings=lambda vendor: section("shelly", {"base_url": vendor.url, "poll_interval_secs": 1}, "pro"),
        open_kinds=open_kinds,
        fewer=lambda vendor: vendor.status.pop("switch:2"),
        more=lambda vendor: vendor.status.update({"switch:2": {"id": 2, "output": False}}),
    )


@pytest.mark.slow
class TestTasmotaOverHttp(AdapterContract):
    """A relay, in Lua."""

    subject = Subject(
        name="heater",
        kind=LUA_KIND,
        device="relay:1",
        simulate=Tasmota,
        settings=lambda vendor: section("tasmota_http", {"base_url": vendor.url, "poll_interval_secs": 1}, "heater"),
        open_kinds=open_kinds,
    )


@pytest.mark.slow
class TestHomeWizard(AdapterContract):
    """A socket, in Lua."""

    subject = Subject(
        name="socket",
        kind=LUA_KIND,
        device="socket",
        simulate=HomeWizardSocket,
        settings=lambda vendor: section("homewizard", {"base_url": vendor.url, "poll_interval_secs": 1}, "socket"),
        open_kinds=open_kinds,
    )


@pytest.mark.slow
class TestHue(AdapterContract):
    """Two lamps behind a bridge that pushes, in Lua."""

    subject = Subject(
        name="hue",
        kind=LUA_KIND,
        device="lamp1",
        simulate=HueBridge,
        settings=lambda vendor: section("hue", {"base_url": vendor.url, "poll_interval_secs": 1}, "hue"),
        open_kinds=open_kinds,
        fewer=lambda vendor: vendor.lamps.pop("light2"),
        more=lambda vendor: vendor.add(2),
    )


SITE = {"Body": {"Data": {"Site": {"P_PV": 3520.4, "P_Grid": -1200.0, "P_Load": -2320.4, "E_Day": 5100.0}}}}
SKY = {"current": {"temperature_2m": 11.5, "weather_code": 61}, "daily": {}}


@pytest.mark.slow
class TestFronius(ReadingContract):
    """A roof, in Lua."""

    subject = Subject(
        name="roof",
        kind=LUA_KIND,
        device="site",
        simulate=lambda: JsonVendor({"/solar_api/v1/GetPowerFlowRealtimeData.fcgi": SITE}),
        settings=lambda vendor: section("fronius", {"base_url": vendor.url, "poll_interval_secs": 1}, "roof"),
        open_kinds=open_kinds,
    )


@pytest.mark.slow
class TestOpenMeteo(ReadingContract):
    """The weather, in Lua."""

    subject = Subject(
        name="sky",
        kind=LUA_KIND,
        device="here",
        simulate=lambda: JsonVendor({"/v1/forecast": SKY}),
        settings=lambda vendor: section(
            "open_meteo",
            {"base_url": vendor.url, "poll_interval_secs": 1, "latitude": 52.5, "longitude": 13.4},
            "sky",
        ),
        open_kinds=open_kinds,
    )


class TestThePage(AdapterContract):
    """The example of docs/adapters.md, as it stands there."""

    subject = Subject(
        name="boiler",
        kind=RELAY,
        device="relay",
        change=lambda vendor: setattr(vendor, "is_on", True),
    )
