"""Homes that the page is tried in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiomqtt

from appliance import config
from tests.adapters.mqtt.broker import PASSWORD, USER, OwnBroker, running
from tests.fakes.announced import ANNOUNCED, announce
from tests.fakes.app import App, open_app
from tests.fakes.furnished import many, show
from tests.fakes.patience import until

TOML = f'[adapters.mqtt]\nhost = "127.0.0.1"\nusername = "{USER}"\npassword = "{PASSWORD}"\nport = '


@asynccontextmanager
async def announced_home(tmp_path: Path) -> AsyncIterator[tuple[App, aiomqtt.Client]]:
    """A home whose devices are announced by this client, and shown as they are."""
    async with running(OwnBroker(tmp_path)) as broker, broker.client() as client:
        await announce(client)
        adapters = config.parse(f"{TOML}{broker.port}\n", "x", {}).adapters
        async with open_app(root=tmp_path, adapters=adapters) as app:
            registry = app.hub.registry
            await until(lambda: len(registry.list_devices()) == len(ANNOUNCED), 20)
            shown = [f"mqtt:{each}" for each, (_, states) in ANNOUNCED.items() if states]
            await until(lambda: all(len(each.attributes) > 1 for each in registry.find_devices(shown)), 20)
            await client.subscribe("home/+/+", qos=1)
            yield app, client


async def large(app: App, count: int) -> None:
    """Lamps in ten rooms, as many as asked for."""
    show(app.hub.registry, *many(count))
    for room in range(10):
        await app.post("/rooms", {"id": f"room_{room}", "name": f"Room {room}"})
    for at in range(count):
        await app.post(f"/devices/shown:lamp_{at:03}/room", {"room_id": f"room_{at % 10}"})
    await app.post("/rooms", {"id": "nobody", "name": "Nobody's"})
