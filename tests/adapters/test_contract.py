"""Every kind of adapter keeps the contract, against its simulator."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from aiohttp import web

from appliance.adapters.elgato_lights.kind import ELGATO_LIGHTS, ElgatoLights
from appliance.adapters.elgato_lights.simulator import Light, LightSimulator
from appliance.adapters.roku_tv.kind import ROKU_TV, RokuTv
from appliance.adapters.roku_tv.simulator import TvSimulator
from appliance.adapters.simulated import SimulatedDevice
from appliance.adapters.wled.kind import WLED, Wled
from appliance.adapters.wled.simulator import WledSimulator, segment
from tests.adapters.contract import AdapterContract, Subject


class RelaySimulator(SimulatedDevice):
    """The relay that docs/adapters.md talks to."""

    content_type = "application/json"
    is_on = False

    def __init__(self) -> None:
        super().__init__(host="127.0.0.1", port=0, clock=None)

    def _routes(self) -> Iterable[web.RouteDef]:
        return [web.get("/relay", self._answer), web.post("/relay", self._switch)]

    def _note(self, request: web.Request, body: bytes) -> None:
        """Nothing is noted."""

    async def _answer(self, request: web.Request) -> web.Response:
        self._settle()
        return web.json_response({"name": "Boiler", "model": "R1", "on": self.is_on})

    async def _switch(self, request: web.Request) -> web.Response:
        wish = await request.json()
        self._take(lambda: setattr(self, "is_on", wish["on"]))
        return await self._answer(request)


def _read_page() -> dict[str, Any]:
    """What the Python of docs/adapters.md defines."""
    page = Path(__file__).parents[2] / "docs" / "adapters.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    module = ModuleType("page")
    sys.modules["page"] = module
    exec("\n".join(blocks), vars(module))  # noqa: S102 - our own page
    return vars(module)


PAGE = _read_page()


class TestElgatoLights(AdapterContract):
    """Two lights at one address."""

    subject = Subject(
        name="desk",
        kind=ELGATO_LIGHTS,
        simulate=lambda: LightSimulator(lights=[Light(temperature=200), Light(temperature=300)]),
        settings=lambda vendor: ElgatoLights(base_url=vendor.url, poll_interval_secs=1),
        device="light:0",
        fewer=lambda vendor: vendor.lights.pop(),
        more=lambda vendor: vendor.lights.append(Light(temperature=300)),
    )


class TestRokuTv(AdapterContract):
    """A TV."""

    subject = Subject(
        name="den",
        kind=ROKU_TV,
        simulate=TvSimulator,
        settings=lambda vendor: RokuTv(ip_address=vendor.host, port=vendor.port, poll_interval_secs=1),
        device="tv",
    )


class TestWled(AdapterContract):
    """A strip of two segments."""

    subject = Subject(
        name="strip",
        kind=WLED,
        simulate=WledSimulator,
        settings=lambda vendor: Wled(base_url=vendor.url, poll_interval_secs=1),
        device="segment:1",
        fewer=lambda vendor: vendor.state["seg"].pop(0),
        more=lambda vendor: vendor.state["seg"].insert(0, segment(0)),
    )


class TestThePage(AdapterContract):
    """The example of docs/adapters.md, as it stands there."""

    subject = Subject(
        name="boiler",
        kind=PAGE["RELAY"],
        simulate=RelaySimulator,
        settings=lambda vendor: PAGE["Relay"](base_url=vendor.url, poll_interval_secs=1),
        device="relay",
    )
