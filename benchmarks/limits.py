"""The cost of a hub, depending on the numbers of devices, automations, readers, and values per minute.

All these numbers are far larger than in a normal home.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks._client import Readers, ask, percentile, wait_until_ready
from benchmarks._frame import Row, Sample
from benchmarks._processes import hub, lamps, peer
from benchmarks.stream import latencies_by_turns, strip_section, until_pushed

HOMES = {
    "devices": (100, 1_000, 5_000),
    "automations": (100, 1_000, 5_000),
    "readers": (1, 100, 500),
}
VALUES = (6_000, 30_000, 100_000)
SECONDS = 15
DEVICES = 100
LIGHTS = 50
"""The number of lights at each simulated address. An adapter uses at most 64 of them."""

AUTOMATION = """
return {{
  id = "a{number}", name = "Automation {number}",
  trigger = {{ type = "device_state_change", device_id = "lamp0:light:{number}", attribute = "brightness" }},
  execute = function(ctx, event) end,
}}
"""


def measure(_rounds: int) -> Iterator[Sample]:
    """Measure each size once, each in a separate hub."""
    for what, counts in HOMES.items():
        for count in counts:
            sizes = {"devices": DEVICES, "automations": 0, "readers": 1, what: count}
            size = f"{count:,} {what}" if count > 1 else f"1 {what.removesuffix('s')}"
            for name, unit, value in _home(**sizes):
                yield Row(label=f"{size}: {name}", unit=unit).sample(value)
    for count in VALUES:
        yield from _stream(f"{count:,} values per minute", count)


def _home(devices: int, automations: int, readers: int) -> Iterator[tuple[str, str, float]]:
    with ExitStack() as stack:
        strip, push, _ = stack.enter_context(peer("strip"))
        others = stack.enter_context(peer("lamps", str(devices // LIGHTS), str(LIGHTS)))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lares-benchmark-")))
        (folder / "config" / "automations").mkdir(parents=True)
        for number in range(automations):
            (folder / "config" / "automations" / f"{number}.lua").write_text(AUTOMATION.format(number=number))
        began = time.perf_counter()
        home = stack.enter_context(hub(strip_section(strip) + lamps(others), folder=folder))
        wait_until_ready(home.port)
        yield "start to the first answer", "s", home.started_after
        yield "all present after", "s", time.perf_counter() - began
        if automations:
            began = time.perf_counter()
            reply = json.loads(ask(home.port, "POST", "/automations/reload", b"{}"))
            assert reply["status"] == "ok", reply
            yield "a reload of all files", "s", time.perf_counter() - began
        until_pushed(home.port, push)
        took = percentile(asyncio.run(latencies_by_turns([(home.port, push)], readers))[0], 50)
        yield "from a push to the last reader, p50", "ms", took
        began = time.perf_counter()
        ask(home.port, "GET", "/devices")
        yield "all devices in one answer", "ms", 1000 * (time.perf_counter() - began)
        yield "memory of hub and worker (PSS)", "MB", home.pss_mb()


def _stream(what: str, per_minute: int) -> Iterator[Sample]:
    """Push values for a while. Yield the cost of the values, and the proportion of the values that a reader
    received."""
    with peer("strip") as [strip, push, push_many], hub(strip_section(strip), is_watched=True) as home:
        until_pushed(home.port, push)
        cpu = home.cpu_secs()
        home.forget_turns()
        pushed, received = asyncio.run(_push(home.port, push_many, per_minute / 60))
        yield Row(label=f"{what}: processor", unit="% of a core").sample(100 * (home.cpu_secs() - cpu) / SECONDS)
        yield Row(label=f"{what}: received by a reader", unit="%").sample(100 * received / pushed)
        yield home.longest_turn(what)
        yield Row(label=f"{what}: memory of hub and worker (PSS)", unit="MB").sample(home.pss_mb())


async def _push(port: int, push: int, per_second: float) -> tuple[int, int]:
    """Push values evenly. Return the number of pushed values, and the number of frames that a reader received."""
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
