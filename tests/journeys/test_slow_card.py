"""Every sync of the card takes 600 ms. Only changes wait for a sync, and several changes share one sync."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.fakes.card import Card
from tests.fakes.patience import until
from tests.fakes.process import Process, configure, running

pytestmark = pytest.mark.slow  # needs a C compiler, which few machines have

DELAY = 0.6
"""Seconds of a sync."""


@pytest.fixture
def card(tmp_path: Path) -> Card:
    """Provide the card, which is fast until the test slows it down."""
    return Card(tmp_path)


@pytest.fixture
async def hub(tmp_path: Path, card: Card) -> AsyncIterator[Process]:
    """Run a hub on the card, and make the card slow."""
    configure(tmp_path)
    async with running(tmp_path, card.environment) as hub:
        assert await hub.post("/rooms", id="first", name="First") == 200
        card.switch_on("slow")
        yield hub
        assert await hub.stop() == 0


async def test_a_change_is_answered_after_its_sync_and_invisible_before(hub: Process, card: Card) -> None:
    frames: list[tuple[float, str]] = []

    async def listen(socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            frames.append((time.perf_counter() - began, message.json()["type"]))

    async with hub.session.ws_connect(f"{hub.url}/events") as socket:
        syncs = card.syncs
        began = time.perf_counter()
        listening = asyncio.ensure_future(listen(socket))
        changing = asyncio.ensure_future(hub.post("/rooms", id="den", name="Den"))
        polls = 0
        while not changing.done() and (await hub.ask("GET", "/rooms/den"))[0] == 404:
            polls += 1
        seen = time.perf_counter() - began
        assert await changing == 200
        acknowledged = time.perf_counter() - began
        assert (await hub.ask("GET", "/rooms/den"))[0] == 200
        await until(lambda: frames)
        listening.cancel()
    print(f"acknowledged after {acknowledged:.3f} s; polled {polls} times meanwhile without a change")
    assert acknowledged >= DELAY
    assert seen >= DELAY
    assert polls >= 3
    assert frames[0][1] == "room.added"
    assert frames[0][0] >= DELAY
    assert card.syncs == syncs + 1


async def test_requests_without_the_card_do_not_wait_for_it(hub: Process) -> None:
    changing = asyncio.ensure_future(
        asyncio.gather(*(hub.post("/rooms", id=f"room-{number}", name="Room") for number in range(16)))
    )
    await asyncio.sleep(0.02)
    took = []
    while not changing.done():
        began = time.perf_counter()
        assert (await hub.ask("GET", "/health"))[0] == 200
        took.append(time.perf_counter() - began)
        await asyncio.sleep(0.002)
    assert await changing == [200] * 16
    took.sort()
    print(f"/health was asked {len(took)} times during the sync: half of them within {took[len(took) // 2]:.4f} s")
    assert len(took) >= 10, "who waits for the syncs, at most two, asks no oftener than that"


@pytest.mark.slow
async def test_a_change_during_the_stop_survives_if_it_was_confirmed(tmp_path: Path, hub: Process) -> None:
    changing = asyncio.ensure_future(hub.post("/rooms", id="den", name="Den"))
    await asyncio.sleep(DELAY / 3)
    assert await hub.stop() == 0
    [answer] = await asyncio.gather(changing, return_exceptions=True)
    assert answer == 200, "the hub waits for what it has begun"
    async with running(tmp_path) as again:
        assert len(await again.get("/rooms")) == 2
        assert await again.stop() == 0
