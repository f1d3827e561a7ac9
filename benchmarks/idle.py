"""The costs of minutes without requests, for a hub with 100 polled lamps and for a hub without devices."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks._client import wait_until_ready
from benchmarks._frame import Row, Sample
from benchmarks._processes import Running, hub, lamps, peer

LAMPS, POLL_SECS = 100, 5
WINDOWS, SECONDS, SETTLE_SECS = 5, 30, 10
"""Number and length of the measurement windows, and the pause before them, in seconds. A single window is not
enough, because the amount of rare activity can differ by half between windows."""

POLLED = f"{LAMPS} lamps polled every {POLL_SECS} s"
CPU = Row(label=f"{POLLED}: processor", unit="% of a core", floor="bare aiohttp", at_most=1.15)
"""The maximum ratio between the processor use of the hub (0.45 % of a core) and of bare aiohttp (0.39 %)."""
KEPT = Row(label=f"{POLLED} by bare aiohttp over kept connections: processor", unit="% of a core")
MEMORY = Row(label=f"{LAMPS} lamps: memory of the hub and its Lua worker (PSS)", unit="MB", at_most=60)
WAKEUPS = Row(label="no device: wake-ups of all threads of hub and worker", unit="per second", at_most=0.5)
EMPTY = Row(label="no device: memory of the hub and its Lua worker (PSS)", unit="MB", at_most=45)


def measure(_rounds: int) -> Iterator[Sample]:
    """Measure all hubs at the same time, in a fixed number of windows. Idle hubs do not disturb each other."""
    with (
        peer("lamps", str(LAMPS), "1") as ports,
        peer("polls", str(POLL_SECS), "1", *map(str, ports)) as [bare],
        peer("polls", str(POLL_SECS), "60", *map(str, ports)) as [kept],
        hub(lamps(ports, POLL_SECS)) as home,
        hub() as empty,
    ):
        wait_until_ready(home.port)
        time.sleep(SETTLE_SECS)
        polling = (home, Running(pid=bare), Running(pid=kept))
        for _ in range(WINDOWS):
            wakeups, before = empty.wakeups(), [each.cpu_secs() for each in polling]
            time.sleep(SECONDS)
            ours, bare_one, kept_one = (
                100 * (each.cpu_secs() - at_first) / SECONDS for each, at_first in zip(polling, before, strict=True)
            )
            yield CPU.sample(ours, bare_one)
            yield KEPT.sample(kept_one)
            yield WAKEUPS.sample((empty.wakeups() - wakeups) / SECONDS)
        yield MEMORY.sample(home.pss_mb())
        yield EMPTY.sample(empty.pss_mb())
