"""What an event costs beside much that it does not concern: other devices, automations, readers that are idle."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks._client import Readers, hammer, percentile, request, until_ready
from benchmarks._frame import Row, Sample
from benchmarks._lag import watched
from benchmarks._processes import hub, lamps, peer
from benchmarks.stream import Side, latencies_by_turns, strip_section, until_pushed

DEVICES, AUTOMATIONS, READERS = (10, 2_000), (10, 1_000), (1, 200)
SECONDS = 1.0
CORES = 2

BESIDE_DEVICES = Row(
    label=f"a push → a reader, p50, beside {DEVICES[1]:,} other devices",
    unit="ms",
    beside=f"beside {DEVICES[0]}",
    at_most=1.2,
)
BESIDE_AUTOMATIONS = Row(
    label=f"a push → a reader, p50, beside {AUTOMATIONS[1]:,} automations that listen to others",
    unit="ms",
    beside=f"beside {AUTOMATIONS[0]}",
    at_most=1.2,
)
BESIDE_READERS = Row(
    label=f"GET one device, p50, beside {READERS[1]} idle readers",
    unit="ms",
    beside=f"beside {READERS[0]}",
    at_most=1.2,
)

AUTOMATION = """
return {{
  id = "a{number}", name = "Automation {number}",
  trigger = {{ type = "device_state_change", device_id = "lamp0:light:{number}", attribute = "brightness" }},
  execute = function(ctx, event) end,
}}
"""


def measure(rounds: int) -> Iterator[Sample]:
    """Two hubs that differ in one thing, by turns, on two cores: on more, where the kernel puts them differs too."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-CORES:])
    with ExitStack() as stack:
        pairs = [[_open(stack, devices=count) for count in DEVICES], [_open(stack, files=n) for n in AUTOMATIONS]]
        lags = [[stack.enter_context(watched(side.port)) for side in pair] for pair in pairs]
        for _ in range(rounds):
            for row, pair in zip((BESIDE_DEVICES, BESIDE_AUTOMATIONS), pairs, strict=True):
                few, many = asyncio.run(latencies_by_turns(pair, 1))
                yield row.sample(percentile(many, 50), percentile(few, 50))
            home = pairs[0][0]
            few, many = (asyncio.run(_requests(home.port, readers)) for readers in READERS)
            yield BESIDE_READERS.sample(percentile(many, 50), percentile(few, 50))
    for (_, each), what in zip(lags, (f"{DEVICES[1]:,} devices", f"{AUTOMATIONS[1]:,} automations"), strict=True):
        yield from each.samples(what)


def _open(stack: ExitStack, *, devices: int = 1, files: int = 0) -> Side:
    """A hub with a strip and so many other devices and automations, and the port that makes the strip push."""
    strip, push = stack.enter_context(peer("strip"))
    others = stack.enter_context(peer("lamps", "1", str(devices + files)))
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lares-benchmark-")))
    automations = folder / "config" / "automations"
    automations.mkdir(parents=True)
    for number in range(files):
        (automations / f"{number}.lua").write_text(AUTOMATION.format(number=number))
    home = stack.enter_context(hub(strip_section(strip) + lamps(others), folder=folder))
    asyncio.run(until_ready(home.port))
    asyncio.run(until_pushed(home.port, push))
    return Side(port=home.port, push=push)


async def _requests(port: int, readers: int) -> list[float]:
    async with Readers(port, readers):
        return await hammer(port, [request("GET", "/devices/lamp0:light:0")], clients=1, seconds=SECONDS)
