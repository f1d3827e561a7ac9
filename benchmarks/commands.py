"""Commands at instant simulated lamps, next to the vendor's own round trips done bare with aiohttp."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Iterator, Sequence

import aiohttp

from benchmarks._client import Client, request, wait_until_ready
from benchmarks._frame import Row, Sample
from benchmarks._processes import hub, lamps, peer

LAMPS = 16
TIMES = 150
PATH = "/elgato/lights"
BESIDE = "bare aiohttp GET, PUT, GET on a connection of their own"

ONE = Row(label="command at a lamp, p50", unit="ms", beside=BESIDE, at_most=1.5)
MANY = Row(
    label=f"{LAMPS} commands at {LAMPS} lamps at once, until the last, p50", unit="ms", beside=BESIDE, at_most=1.5
)


def measure(rounds: int) -> Iterator[Sample]:
    """Hub and bare trips by turns."""
    with peer("lamps", str(LAMPS), "1") as ports, hub(lamps(ports)) as home:
        wait_until_ready(home.port)
        for number in range(rounds):
            one = _command(home.port, 1, number)
            bare = asyncio.run(_trips(ports[:1], number))
            many = _command(home.port, LAMPS, number)
            bare_many = asyncio.run(_trips(ports, number))
            yield ONE.sample(statistics.median(one), statistics.median(bare))
            yield MANY.sample(statistics.median(many), statistics.median(bare_many))


def _brightness(turn: int, number: int) -> int:
    """Another one with each command."""
    return 1 + (turn + number) % 100


def _command(port: int, count: int, turn: int) -> list[float]:
    """Milliseconds until this many lamps have obeyed, commanded at once over a kept connection each."""
    clients = [Client(port) for _ in range(count)]
    durations = []
    for number in range(TIMES):
        body = json.dumps({"capability": "brightness", "action": "set", "value": _brightness(turn, number)}).encode()
        began = time.perf_counter()
        for lamp, client in enumerate(clients):
            client.send(request("POST", f"/devices/lamp{lamp}:light:0/command", body))
        for client in clients:
            client.receive()
        durations.append(1000 * (time.perf_counter() - began))
    for client in clients:
        client.close()
    return durations


async def _trips(ports: Sequence[int], turn: int) -> list[float]:
    """Return the milliseconds of the vendor's round trips at all lamps at once: read, write, read again."""
    durations = []
    async with aiohttp.ClientSession() as session:

        async def trip(port: int, brightness: int) -> None:
            url = f"http://127.0.0.1:{port}{PATH}"
            body = json.dumps({"lights": [{"brightness": brightness}]})
            for number, (method, data) in enumerate((("GET", None), ("PUT", body), ("GET", None))):
                headers = {"Connection": "close"} if number == 2 else {}
                async with session.request(method, url, data=data, headers=headers) as answer:
                    json.loads(await answer.read())

        for number in range(TIMES):
            began = time.perf_counter()
            await asyncio.gather(*(trip(port, _brightness(turn, number)) for port in ports))
            durations.append(1000 * (time.perf_counter() - began))
    return durations
