"""A home of kinds in Lua: weather, prices and a model that answers; and a vendor that sends whatever it likes."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from appliance import config
from appliance.adapters.elgato_lights.kind import ElgatoLights
from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.simulated import SimulatedDevice
from tests.adapters.lua_kinds.bench import section
from tests.adapters.lua_kinds.simulators import ShellyTwo, Tasmota
from tests.adapters.lua_kinds.sources import Awattar, Ollama, OpenMeteo
from tests.fakes.app import LIGHT, open_app
from tests.fakes.lua import automation, scene, write
from tests.fakes.patience import until, until_async

pytestmark = pytest.mark.slow

RAIN = "custom.open_meteo.rain_next_hour"
ROOF_OPEN = '{ type = "device_state", device_id = "virtual:roof", attribute = "contact", equals = "open" }'


async def test_rain_is_warned_of_the_boiler_runs_when_it_is_cheap_and_a_model_answers(
    tmp_path: Path,
) -> None:
    rank = "custom.awattar.rank"
    files = {
        "automations/rain.lua": automation(
            "rain",
            f'{{ type = "weather_state", device_id = "weather:here", attribute = "{RAIN}", above = 0.5 }}',
            'ctx:set("warned", true) ctx:run_scene("rain_check")',
            more=f"conditions = {{ {ROOF_OPEN} }}",
        ),
        "automations/boiler.lua": automation(
            "boiler",
            f'{{ type = "device_state_change", device_id = "price:now", attribute = "{rank}", below = 4 }}',
            'ctx:command("heater:relay:1", { capability = "power", action = "on" })',
        ),
        "scenes/rain_check.lua": scene(
            "rain_check",
            """local rain = ctx:get_device("weather:here").attributes["custom.open_meteo.rain_next_hour"].value
               local answer = ctx:invoke("ollama:chat", { prompt = "Rain: " .. rain .. " mm. Answer yes or no." })
               ctx:set("answer", answer.message.content)""",
        ),
    }
    async with (
        OpenMeteo(0.0) as sky,
        Awattar(9, 1) as market,
        Ollama() as model,
        Tasmota() as heater,
    ):
        heater.status["StatusSTS"]["POWER"] = "OFF"
        write(tmp_path, files)
        place = {"base_url": sky.url, "latitude": 52.5, "longitude": 13.4, "poll_interval_secs": 1}
        adapters: dict[str, Any] = {
            "weather": section("open_meteo", place, "weather"),
            "price": section("awattar", {"base_url": market.url}, "price"),
            "ollama": section("ollama", {"base_url": model.url}, "ollama"),
            "heater": section("tasmota_http", {"base_url": heater.url, "poll_interval_secs": 1}, "heater"),
        }
        toml = '[adapters.virtual]\n[[adapters.virtual.devices]]\nid = "roof"\nattributes = { contact = "open" }\n'
        adapters["virtual"] = virtual_of(toml)
        async with open_app(adapters=adapters, root=tmp_path) as app:
            assert (await app.device("weather:here"))["attributes"]["temperature_outdoor"]["value"] == 11.5
            sky.rain(2.0)
            await until(lambda: {"warned", "answer"} <= {each.name for each in app.hub.variables.list_all()})
            values = {each.name: each.value for each in app.hub.variables.list_all()}
            assert values["answer"] == "yes"
            assert model.asked[-1].json["messages"][0]["content"].startswith("Rain: 2.0 mm")

            market.tell(1, 9)
            adapter = next(each for each in app.hub.dispatcher._runners.values() if each.name == "price").adapter
            adapter.poll_now()  # type: ignore[union-attr]
            await until(lambda: heater.status["StatusSTS"]["POWER"] == "ON")


def virtual_of(toml: str) -> Any:
    """The settings of a section of virtual devices."""
    return config.parse(toml, "config/x.toml", {}).adapters["virtual"]


class Fuzz(SimulatedDevice):
    """Answers with whatever comes to its mind; a seed makes that the same each time."""

    content_type = "application/json"

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        self._random = random.Random(29)

    def _routes(self) -> Iterable[web.RouteDef]:
        return [web.route("*", "/{path:.*}", self._answer)]

    def _note(self, request: web.Request, body: bytes) -> None:
        """Nothing is noted."""

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        dice = self._random.randrange(7)
        if dice == 0:
            return web.Response(body=self._random.randbytes(self._random.randrange(5000)))
        if dice == 1:
            return web.Response(status=self._random.choice((302, 307)), headers={"Location": "http://127.0.0.1:9/x"})
        if dice == 2:
            bomb = gzip.compress(bytes(10_000_000))
            return web.Response(body=bomb, headers={"Content-Encoding": "gzip", "Content-Type": self.content_type})
        if dice == 3:
            return web.Response(body=b"[" * 100_000, content_type=self.content_type)
        if dice == 4:
            return web.Response(body=b"x" * (1 << 21))
        return self._json(self._value(0))

    def _value(self, depth: int) -> Any:
        kinds: list[Any] = [None, True, -1, 1e300, "x" * 300, "\u202e\x00", [], {}]
        if depth > 4 or self._random.random() < 0.3:
            return self._random.choice(kinds)
        if self._random.random() < 0.3:
            return [self._value(depth + 1) for _ in range(self._random.randrange(5))]
        names = ("mac", "model", "type", "gen", "sys", "switch:0", "status", "relays", "meters", "aenergy", "output")
        return {self._random.choice(names): self._value(depth + 1) for _ in range(self._random.randrange(6))}


async def test_a_fuzzed_vendor_and_lost_workers_cost_the_others_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Fuzz() as fuzz, ShellyTwo() as good, LightSimulator() as lamp:
        adapters: dict[str, Any] = {
            "evil": section(
                "shelly", {"base_url": fuzz.url, "poll_interval_secs": 1, "password": "s3cr3t-pw"}, "evil"
            ),
            "good": section("shelly", {"base_url": good.url, "poll_interval_secs": 1}, "good"),
            "elgato_lights": ElgatoLights(base_url=lamp.url, poll_interval_secs=1),
        }
        async with open_app(adapters=adapters, root=tmp_path) as app:
            evil = next(each for each in app.hub.dispatcher._runners.values() if each.name == "evil").adapter
            for number in range(60):
                evil.poll_now()  # type: ignore[union-attr]
                await asyncio.sleep(0.02)
                if number % 20 == 0:
                    assert (await app.command(LIGHT, "power", "toggle")).status == 200
                    assert (await app.command("good:switch:0", "power", "toggle")).status == 200
            said = [each.getMessage() for each in caplog.records if each.name == "adapters"]
            assert len([each for each in said if each.startswith("evil")]) <= 3, said
            shown = json.dumps((await app.get("/adapters/evil")).json) + "\n".join(said)
            assert "s3cr3t-pw" not in shown and "\u202e" not in shown

            for pool in (app.hub.pool, app.hub.kinds.pool):
                assert pool is not None
                [worker] = pool.figures()["workers"]
                os.kill(worker["pid"], signal.SIGKILL)
            await until_async(lambda: commands(app, "good:switch:0"))


async def commands(app: Any, device_id: str) -> bool:
    """Whether the device takes a command."""
    return bool((await app.command(device_id, "power", "toggle")).status == 200)
