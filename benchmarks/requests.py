"""Requests a second and how long each takes, beside a bare Sanic that answers the same bytes without key or home."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from benchmarks._client import hammer, one, percentile, request, until_ready
from benchmarks._frame import Row, Sample
from benchmarks._processes import hub, lamps, peer

DEVICES = 100
SECONDS = 1.5
PATHS = {
    "one device": ["/devices/lamp0:light:10"],
    "one device after another": [f"/devices/lamp0:light:{number}" for number in range(10, DEVICES)],
    f"{DEVICES} devices": ["/devices"],
}
LEAST = {"one device": 0.95, "one device after another": 0.95, f"{DEVICES} devices": 0.9}
CLIENTS = (1, 16)
BESIDE = "bare Sanic, the same bytes"

RATES = {
    (what, clients): Row(label=f"GET {what}, {_plural}", unit="requests/s", beside=BESIDE, at_least=LEAST[what])
    for what in PATHS
    for clients, _plural in ((1, "1 client"), (16, "16 clients"))
}
TIMES = {
    (what, clients, percent): Row(label=f"GET {what}, {clients} at once, p{percent}", unit="ms", beside=BESIDE)
    for what in PATHS
    for clients in CLIENTS
    for percent in (50, 99)
}


def measure(rounds: int) -> Iterator[Sample]:
    """Hub and bare Sanic by turns."""
    with peer("lamps", "1", str(DEVICES)) as ports, hub(lamps(ports)) as home:
        asyncio.run(until_ready(home.port))
        for what, paths in PATHS.items():
            body = asyncio.run(one(home.port, request("GET", paths[0])))
            with peer("fixed", given=body) as [bare]:
                for clients in (clients for _ in range(rounds) for clients in CLIENTS):
                    ours = _hammer(home.port, paths, clients)
                    limit = _hammer(bare, ["/"], clients)
                    yield RATES[what, clients].sample(len(ours) / SECONDS, len(limit) / SECONDS)
                    for percent in (50, 99):
                        row = TIMES[what, clients, percent]
                        yield row.sample(percentile(ours, percent), percentile(limit, percent))


def _hammer(port: int, paths: list[str], clients: int) -> list[float]:
    return asyncio.run(hammer(port, [request("GET", path) for path in paths], clients=clients, seconds=SECONDS))
