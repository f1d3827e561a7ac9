"""Two hubs and their broker are killed repeatedly. Within seconds, the two hubs list all devices again."""

from __future__ import annotations

import asyncio
import itertools
import signal
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.simulator import TvSimulator
from tests.adapters.mqtt.broker import KINDS, PASSWORD, USER, Broker, running
from tests.fakes import process

HEALED_SECS = 20.0
"""All devices must be present and accept commands within this number of seconds after the last restart."""

LAMP, TV = "mqtt:lares_first_elgato_lights_light_0", "mqtt:lares_second_roku_tv_tv"


class Neighbour:
    """One hub, which can be killed and started again."""

    def __init__(self, folder: Path, name: str, port: int, adapter: str) -> None:
        self._folder = folder / name
        self._folder.mkdir()
        self._stack = AsyncExitStack()
        self.hub: process.Process
        section = (
            f'[adapters.mqtt]\nhost = "127.0.0.1"\nport = {port}\nusername = "{USER}"\npassword = "{PASSWORD}"\n'
        )
        process.configure(self._folder, f'{adapter}{section}publish = true\nhub_id = "{name}"\n')

    async def start(self) -> None:
        self.hub = await self._stack.enter_async_context(process.running(self._folder))

    async def kill(self) -> None:
        await self.hub.kill()
        await self._stack.aclose()

    async def succeeds(self, device_id: str, action: str) -> bool:
        """Return whether a device from the broker executes a command."""
        path, body = f"/devices/{device_id}/command", {"capability": "power", "action": action}
        status, _ = await self.hub.ask("POST", path, body)
        return status == 200

    async def shown(self) -> dict[str, Any]:
        """Return the power of each device that is online."""
        devices = await self.hub.get("/devices")
        online = [each for each in devices if each["attributes"]["state"] == "online"]
        return {each["id"]: each["attributes"].get("power") for each in online}


class Neighbourhood:
    def __init__(self, broker: Broker, first: Neighbour, second: Neighbour) -> None:
        self.broker, self.first, self.second = broker, first, second
        self.rounds = 0

    async def kill(self, name: str) -> None:
        if name == "broker":
            self.broker.stop(signal.SIGKILL)
        else:
            await getattr(self, name).kill()

    async def start(self, name: str) -> None:
        await getattr(self, name).start()

    async def heal(self) -> float:
        """Wait until both hubs list both devices. Command each device from the other hub. Return the elapsed
        seconds."""
        began = time.monotonic()
        self.rounds += 1
        action = "off" if self.rounds % 2 else "on"
        async with asyncio.timeout(HEALED_SECS):
            while not (  # noqa: ASYNC110 - asked over HTTP
                await self.second.succeeds(LAMP, action)
                and await self.first.succeeds(TV, action)
                and await self.first.shown() == {"elgato_lights:light:0": action, TV: action}
                and await self.second.shown() == {"roku_tv:tv": action, LAMP: action}
            ):
                await asyncio.sleep(0.1)
        return time.monotonic() - began


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_two_hubs_and_their_broker_recover_from_every_order_of_kills(kind: str, tmp_path: Path) -> None:
    async with (
        running(KINDS[kind](tmp_path)) as broker,
        LightSimulator() as lamp,
        TvSimulator() as tv,
        AsyncExitStack() as stack,
    ):
        tv_section = f'[adapters.roku_tv]\nip_address = "{tv.host}"\nport = {tv.port}\npoll_interval_secs = 1\n'
        first = Neighbour(tmp_path, "first", broker.port, process.light_section(lamp.url))
        second = Neighbour(tmp_path, "second", broker.port, tv_section)
        for each in (first, second):
            await each.start()
            stack.push_async_callback(each.kill)
        home = Neighbourhood(broker, first, second)
        took: dict[tuple[str, ...], float] = {("start",): await home.heal()}
        for victims in itertools.chain(
            ((each,) for each in ("first", "second", "broker")), itertools.permutations(("first", "second", "broker"))
        ):
            for victim in victims:
                await home.kill(victim)
            for victim in victims:
                await home.start(victim)
            took[victims] = await home.heal()
        print({" ".join(victims): round(secs, 1) for victims, secs in took.items()})
