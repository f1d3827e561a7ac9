"""Requests a second and how long each takes, next to a bare Sanic that answers the same bytes without key or home."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from benchmarks._client import ask, hammer, percentile, request, wait_until_ready
from benchmarks._frame import Row, Sample
from benchmarks._processes import hub, lamps, peer

DEVICES = 100
SECONDS = 1.5
PATHS = {
    "one device": (["/devices/lamp0:light:10"], 0.95),
    "one device after another": ([f"/devices/lamp0:light:{number}" for number in range(10, DEVICES)], 0.95),
    f"{DEVICES} devices": (["/devices"], 0.9),
}
"""The requests, and their least rate compared with bare Sanic."""

CLIENTS = {1: "1 client", 16: "16 clients"}
BESIDE = "bare Sanic, the same bytes"


def measure(rounds: int) -> Iterator[Sample]:
    """Hub and bare Sanic by turns."""
    with peer("lamps", "1", str(DEVICES)) as ports, hub(lamps(ports)) as home:
        wait_until_ready(home.port)
        for what, (paths, least) in PATHS.items():
            with peer("fixed", given=ask(home.port, "GET", paths[0])) as [bare]:
                for count, clients in (each for _ in range(rounds) for each in CLIENTS.items()):
                    ours, limit = _hammer(home.port, paths, count), _hammer(bare, ["/"], count)
                    rate = Row(label=f"GET {what}, {clients}", unit="requests/s", beside=BESIDE, at_least=least)
                    yield rate.sample(len(ours) / SECONDS, len(limit) / SECONDS)
                    for percent in (50, 99):
                        row = Row(label=f"GET {what}, {count} at once, p{percent}", unit="ms", beside=BESIDE)
                        yield row.sample(percentile(ours, percent), percentile(limit, percent))


def _hammer(port: int, paths: list[str], clients: int) -> list[float]:
    return asyncio.run(hammer(port, [request("GET", path) for path in paths], clients=clients, seconds=SECONDS))
