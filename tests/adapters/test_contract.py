"""Every kind of adapter keeps the contract, against its simulator."""

from __future__ import annotations

import asyncio
import importlib
import tempfile
from pathlib import Path

from appliance.adapters.elgato_lights.kind import ELGATO_LIGHTS
from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight
from appliance.adapters.kind import AdapterKind
from appliance.adapters.matter.kind import MATTER
from appliance.adapters.matter.simulator import PLUG, simulated_node
from appliance.adapters.roku_tv.kind import ROKU_TV
from appliance.adapters.wled.kind import WLED
from appliance.adapters.wled.simulator import segment
from tests.adapters.contract import AdapterContract, Subject
from tests.adapters.page import make_importable

with tempfile.TemporaryDirectory(prefix="lares-page-") as folder:
    make_importable(Path(folder))
    RELAY: AdapterKind = importlib.import_module("appliance.adapters.relay.kind").RELAY
    for module in ("adapter", "simulator"):
        importlib.import_module(f"appliance.adapters.relay.{module}")


class TestElgatoLights(AdapterContract):
    """Two lights at one address."""

    subject = Subject(
        name="desk",
        kind=ELGATO_LIGHTS,
        simulate=lambda: LightSimulator(lights=[SimulatedLight(temperature=200), SimulatedLight(temperature=300)]),
        device="light:0",
        fewer=lambda vendor: vendor.lights.pop(),
        more=lambda vendor: vendor.lights.append(SimulatedLight(temperature=300)),
    )


class TestRokuTv(AdapterContract):
    """A TV."""

    subject = Subject(
        name="den",
        kind=ROKU_TV,
        device="tv",
    )


class TestWled(AdapterContract):
    """A strip of two segments."""

    subject = Subject(
        name="strip",
        kind=WLED,
        device="segment:1",
        fewer=lambda vendor: vendor.state["seg"].pop(0),
        more=lambda vendor: vendor.state["seg"].insert(0, segment(0)),
    )


class TestMatter(AdapterContract):
    """A lamp and a plug behind one server."""

    subject = Subject(
        name="matter",
        kind=MATTER,
        device="sim-1:1",
        is_polled=False,
        fewer=lambda vendor: asyncio.ensure_future(vendor.remove(2)),
        more=lambda vendor: asyncio.ensure_future(vendor.add(simulated_node(2, "Simulated plug", PLUG))),
    )


class TestThePage(AdapterContract):
    """The example of docs/adapters.md, as it stands there."""

    subject = Subject(
        name="boiler",
        kind=RELAY,
        device="relay",
    )
