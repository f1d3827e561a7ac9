"""Requests per second and their duration, compared with bare Sanic, which sends the same bytes, and with Node-RED."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from benchmarks._client import ask, hammer, percentile, request, wait_until_ready
from benchmarks._frame import Row, Sample
from benchmarks._node_red import answer, node_red
from benchmarks._processes import hub, lamps, peer

BOXES, LAMPS = 2, 50
DEVICES = BOXES * LAMPS
SECONDS = 1.5
PATHS = {
    "one device": (["/devices/lamp0:light:10"], 0.95),
    "one device after another": (
        [f"/devices/lamp{box}:light:{number}" for box in range(BOXES) for number in range(10, LAMPS)],
        0.95,
    ),
    f"{DEVICES} devices": (["/devices"], 0.9),
}
"""Maps each label to its requests, and to the minimum ratio between the hub's rate and bare Sanic's rate."""

CLIENTS = {1: "1 client", 16: "16 clients"}
FLOOR = "bare Sanic, the same bytes"


def measure(rounds: int) -> Iterator[Sample]:
    with peer("lamps", str(BOXES), str(LAMPS)) as ports, hub(lamps(ports)) as home:
        wait_until_ready(home.port)
        devices = ask(home.port, "GET", "/devices").decode()
        kept = {"initialize": f"global.set('devices', {devices})"}
        route, do, reply = answer("devices", "/devices", "get", "msg.payload = global.get('devices')")
        with node_red([route, {**do, **kept}, reply]) as other:
            yield from _compare(home.port, other.port if other else None, rounds)


def _compare(port: int, node_red_port: int | None, rounds: int) -> Iterator[Sample]:
    for what, (paths, least) in PATHS.items():
        with peer("fixed", given=ask(port, "GET", paths[0])) as [bare]:
            for count, clients in (each for _ in range(rounds) for each in CLIENTS.items()):
                is_felt = count > 1 and paths == ["/devices"]
                ours, floor = _hammer(port, paths, count), _hammer(bare, ["/"], count)
                other = _hammer(node_red_port, paths, count) if node_red_port and is_felt else []
                rate = Row(
                    label=f"GET {what}, {clients}", unit="requests/s", floor=FLOOR, at_least=least, is_felt=is_felt
                )
                yield rate.sample(len(ours) / SECONDS, len(floor) / SECONDS, len(other) / SECONDS if other else None)
                for percent in (50, 99):
                    row = Row(label=f"GET {what}, {count} at once, p{percent}", unit="ms", floor=FLOOR)
                    yield row.sample(percentile(ours, percent), percentile(floor, percent))


def _hammer(port: int, paths: list[str], clients: int) -> list[float]:
    return asyncio.run(hammer(port, [request("GET", path) for path in paths], clients=clients, seconds=SECONDS))
