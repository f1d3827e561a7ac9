"""Commands to instant simulated lamps, compared with Node-RED, and with direct requests of aiohttp."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Iterator, Sequence

import aiohttp

from benchmarks._client import Client, percentile, request, wait_until_ready
from benchmarks._frame import Row, Sample
from benchmarks._node_red import Flow, answer, function, node_red, request_lamp
from benchmarks._processes import hub, lamps, peer

LAMPS = 16
TIMES = 150
PATH = "/elgato/lights"
FLOOR = "bare aiohttp GET, PUT, GET over a separate connection"

ONE = Row(label="a command for one lamp, p50", unit="ms", floor=FLOOR, at_most=1.5, is_felt=True)
MANY = {
    percent: Row(
        label=f"the last of {LAMPS} simultaneous commands for {LAMPS} lamps, p{percent}",
        unit="ms",
        floor=FLOOR,
        at_most=1.5,
        is_felt=percent == 99,
    )
    for percent in (50, 99)
}


def measure(rounds: int) -> Iterator[Sample]:
    """Measure the hub and direct requests alternately."""
    with (
        peer("lamps", str(LAMPS), "1") as ports,
        hub(lamps(ports)) as home,
        node_red([each for number, port in enumerate(ports) for each in _flow(number, port)]) as other,
    ):
        wait_until_ready(home.port)
        for number in range(rounds):
            one = _command(home.port, 1, number)
            bare = asyncio.run(_trips(ports[:1], number))
            other_one = statistics.median(_command(other.port, 1, number)) if other else None
            yield ONE.sample(statistics.median(one), statistics.median(bare), other_one)
            many = _command(home.port, LAMPS, number)
            bare_many = asyncio.run(_trips(ports, number))
            other_many = _command(other.port, LAMPS, number) if other else None
            for percent, row in MANY.items():
                yield row.sample(
                    percentile(many, percent),
                    percentile(bare_many, percent),
                    percentile(other_many, percent) if other_many else None,
                )


def _flow(number: int, port: int) -> Flow:
    """Return a Node-RED flow with the same requests as the hub: read, write, read again, and answer."""
    path = f"/devices/lamp{number}:light:0/command"
    route, _, reply = answer(f"lamp{number}", path, "post", "")
    names = [f"lamp{number}-{step}" for step in ("do", "write", "check")]
    body = "msg.payload = { lights: [{ brightness: msg.brightness }] }"
    return [
        route,
        reply,
        function(names[0], f"msg.lamp = {port}; msg.brightness = msg.payload.value", [f"{names[0]}-read"]),
        *request_lamp(f"{names[0]}-read", "GET", [names[1]]),
        *request_lamp(names[1], "PUT", [names[2]], body),
        *request_lamp(names[2], "GET", [str(reply["id"])]),
    ]


def _brightness(turn: int, number: int) -> int:
    """Return a brightness that differs from that of the previous command."""
    return 1 + (turn + number) % 100


def _command(port: int, count: int, turn: int) -> list[float]:
    """Send a command to each of `count` lamps at the same time over open connections. Return the milliseconds
    until all commands have succeeded."""
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
    """Send the vendor's requests (read, write, and read again) to all lamps at once. Return the durations of the
    requests in milliseconds."""
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
