"""How a hub grows: devices, automations, readers, values a minute, up to far more than a home has."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks._client import Readers, one, percentile, request, until_ready
from benchmarks._frame import Row, Sample
from benchmarks._lag import watched
from benchmarks._processes import ask, hub, lamps, peer
from benchmarks.growth import AUTOMATION
from benchmarks.stream import Side, latencies_by_turns, strip_section, until_pushed

DEVICES = (100, 1_000, 5_000)
AUTOMATIONS = (100, 1_000, 5_000)
READERS = (1, 100, 500)
VALUES = (6_000, 30_000, 100_000)
SECONDS = 15
LIGHTS = 100
"""How many lights one simulated lamp has."""

UNITS = {
    "start to the first answer": "s",
    "all there after": "s",
    "memory of hub and worker (PSS)": "MB",
    "all devices in one answer": "ms",
    "a push → the last reader, p50": "ms",
    "a push → the last reader, p99": "ms",
    "a reload of all files": "s",
    "processor": "% of a core",
    "told to a reader": "% of them",
    "loop lag, p99 of a look every 5 ms": "ms",
    "loop lag, most": "ms",
}


def measure(_rounds: int) -> Iterator[Sample]:
    """Each size once, in a hub of its own."""
    for count in DEVICES:
        yield from _home(f"{count:,} devices", devices=count)
    for count in AUTOMATIONS:
        yield from _home(f"{count:,} automations", automations=count)
    for count in READERS:
        yield from _home(f"{count:,} readers", readers=count)
    for count in VALUES:
        yield from _stream(count)


def _home(what: str, *, devices: int = LIGHTS, automations: int = 0, readers: int = 1) -> Iterator[Sample]:
    with ExitStack() as stack:
        strip, push = stack.enter_context(peer("strip"))
        others = stack.enter_context(peer("lamps", str(devices // LIGHTS), str(LIGHTS)))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lares-benchmark-")))
        _write_automations(folder, automations)
        began = time.perf_counter()
        home = stack.enter_context(hub(strip_section(strip) + lamps(others), folder=folder))
        asyncio.run(until_ready(home.port))
        yield _sample(what, "start to the first answer", home.started_after)
        yield _sample(what, "all there after", time.perf_counter() - began)
        if automations:
            yield _sample(what, "a reload of all files", _reload(home.port))
        asyncio.run(until_pushed(home.port, push))
        took = percentile(asyncio.run(latencies_by_turns([Side(port=home.port, push=push)], readers))[0], 50)
        yield _sample(what, "a push → the last reader, p50", took)
        yield _sample(what, "all devices in one answer", _seconds_to_list(home.port) * 1000)
        yield _sample(what, "memory of hub and worker (PSS)", home.pss_mb())


def _write_automations(folder: Path, count: int) -> None:
    place = folder / "config" / "automations"
    place.mkdir(parents=True)
    for number in range(count):
        (place / f"{number}.lua").write_text(AUTOMATION.format(number=number))


def _reload(port: int) -> float:
    began = time.perf_counter()
    body = asyncio.run(one(port, request("POST", "/automations/reload", b"{}")))
    if json.loads(body)["status"] != "ok":
        raise RuntimeError(body.decode())
    return time.perf_counter() - began


def _seconds_to_list(port: int) -> float:
    began = time.perf_counter()
    ask(port, "/devices")
    return time.perf_counter() - began


def _stream(per_minute: int) -> Iterator[Sample]:
    """So many values a minute for a while: what they cost, and how many a reader was told of."""
    what = f"{per_minute:,} values a minute"
    with peer("strip") as [strip, push], hub(strip_section(strip)) as home:
        asyncio.run(until_ready(home.port))
        asyncio.run(until_pushed(home.port, push))
        cpu = home.cpu_secs()
        with watched(home.port) as lags:
            pushed, told = asyncio.run(_push(home.port, push, per_minute / 60))
        yield _sample(what, "processor", 100 * (home.cpu_secs() - cpu) / SECONDS)
        yield _sample(what, "told to a reader", 100 * told / pushed)
        yield _sample(what, "loop lag, p99 of a look every 5 ms", percentile(lags, 99))
        yield _sample(what, "loop lag, most", max(lags))
        yield _sample(what, "memory of hub and worker (PSS)", home.pss_mb())


async def _push(port: int, push: int, per_second: float) -> tuple[int, int]:
    """How many values were pushed, evenly, and how many frames a reader got."""
    async with Readers(port, 1) as reader:
        _, pushing = await asyncio.open_connection("127.0.0.1", push)
        began, sent, total = time.perf_counter(), 0, int(per_second * SECONDS)
        while sent < total:
            due = min(int((time.perf_counter() - began) * per_second), total)
            pushing.write(b"+" * (due - sent))
            sent = due
            await asyncio.sleep(0.005)
        await asyncio.sleep(2)
        pushing.close()
        return sent, reader.frames


def _sample(what: str, name: str, value: float) -> Sample:
    return Row(label=f"{what}: {name}", unit=UNITS[name]).sample(value)
