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
from appliance.adapters.matter.kind import MATTER
from appliance.adapters.matter.simulator import PLUG, MatterSimulator, simulated_node
from appliance.adapters.roku_tv.kind import ROKU_TV
from appliance.adapters.roku_tv.simulator import STANDBY
from appliance.adapters.wled.kind import WLED
from appliance.adapters.wled.simulator import WledSimulator, segment
from tests.adapters.contract import AdapterContract, ReadingContract, Subject
from tests.adapters.lua_kinds import sources
from tests.adapters.lua_kinds.bundled import BUNDLED
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

    subject = BUNDLED["shelly_one"].subject(
        change=lambda vendor: vendor.status["relays"][0].update(ison=True),
    )


@pytest.mark.slow
class TestShellyOfTheSecondGeneration(AdapterContract):
    """Three relays, in Lua."""

    subject = BUNDLED["shelly_two"].subject(
        fewer=lambda vendor: vendor.status.pop("switch:2"),
        more=lambda vendor: vendor.status.update({"switch:2": {"id": 2, "output": False}}),
    )


@pytest.mark.slow
class TestTasmotaOverHttp(AdapterContract):
    """A relay, in Lua."""

    subject = BUNDLED["tasmota_http"].subject()


@pytest.mark.slow
class TestHomeWizard(AdapterContract):
    """A socket, in Lua."""

    subject = BUNDLED["homewizard"].subject()


@pytest.mark.slow
class TestHomeWizardMeter(ReadingContract):
    """A P1 meter, in Lua."""

    subject = BUNDLED["homewizard_meter"].subject()


@pytest.mark.slow
class TestHue(AdapterContract):
    """Two lamps behind a bridge that pushes, in Lua."""

    subject = BUNDLED["hue"].subject(
        fewer=lambda vendor: vendor.remove(2),
        more=lambda vendor: vendor.add(2),
        change=lambda vendor: vendor.show(1, on={"on": True}),
        is_heard=lambda vendor: vendor.streams,
        happen=lambda vendor: vendor.press(1),
        event="single",
        lose=lambda vendor: vendor.reach(1, "connectivity_issue"),
        find=lambda vendor: vendor.reach(1, "connected"),
    )


@pytest.mark.slow
class TestDaikin(AdapterContract):
    """An air conditioner, in Lua."""

    subject = BUNDLED["daikin"].subject(
        change=lambda vendor: vendor.control.update(stemp="19.5"),
        changed=("target_temperature", {"value": 19.5, "unit": "°C"}),
    )


@pytest.mark.slow
class TestSonos(AdapterContract):
    """A player, in Lua."""

    subject = BUNDLED["sonos"].subject(
        change=lambda vendor: vendor.shows.update(CurrentVolume="30"), changed=("volume", 30)
    )


@pytest.mark.slow
class TestFronius(ReadingContract):
    """A roof, in Lua."""

    subject = BUNDLED["fronius"].subject(
        change=lambda vendor: vendor.site.update(P_Grid=7.5),
        changed=("custom.fronius.grid", {"value": 7.5, "unit": "W"}),
    )


@pytest.mark.slow
class TestOpenMeteo(ReadingContract):
    """The weather, in Lua."""

    subject = BUNDLED["open_meteo"].subject()


@pytest.mark.slow
class TestTibber(ReadingContract):
    """The prices of two homes, in Lua."""

    subject = BUNDLED["tibber"].subject(
        change=lambda vendor: vendor.prices["current"].update(level="CHEAP"), changed=("custom.tibber.level", "CHEAP")
    )


@pytest.mark.slow
class TestAwattar(ReadingContract):
    """The prices of a market, in Lua."""

    subject = BUNDLED["awattar"].subject(
        change=lambda vendor: vendor.tell(1, 2, 3), changed=("custom.awattar.price", {"value": 1.0, "unit": "ct/kWh"})
    )


@pytest.mark.slow
class TestFritzBox(ReadingContract):
    """Two phones in a network, in Lua."""

    subject = BUNDLED["fritzbox"].subject(
        change=lambda vendor: vendor.active.update({sources.BEN: "1"}), changed=("presence", True)
    )


class TestThePage(AdapterContract):
    """The example of docs/adapters.md, as it stands there."""

    subject = Subject(
        name="boiler",
        kind=RELAY,
        device="relay",
        change=lambda vendor: setattr(vendor, "is_on", True),
    )
