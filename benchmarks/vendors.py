"""Vendors that mean harm to a kind in Lua: floods, bombs and what never ends, and the longest turn of the loop."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator

from benchmarks._frame import Row, Sample
from benchmarks._turns import LongestTurn
from tests.adapters.lua_kinds.hostile_vendor import BODIES, SOCKETS, STREAMS
from tests.adapters.lua_kinds.test_hostile import attacked, hostile_vendor

ATTACK_SECS, MILLION_SECS = 1.5, 30.0
MESSAGES = 1_000_000
PATHS = (*BODIES, *STREAMS, *SOCKETS)
FLOODS = ("/ws/messages", "/events")

LINES = Row(label=f"{len(PATHS)} attacks: lines of the log for each, most", at_most=1)


class _Lines(logging.Handler):
    """Counts warnings and errors."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += record.levelno >= logging.WARNING


def measure(_rounds: int) -> Iterator[Sample]:
    """What the attacks cost, once."""
    yield from asyncio.run(_measure())


async def _measure() -> list[Sample]:
    lines, longest = 0, LongestTurn()
    gc.freeze()  # as `lares run` does
    with hostile_vendor(20_000) as url:
        for path in PATHS:
            lines = max(lines, await _attack(url, path, ATTACK_SECS, longest))
    figures = [LINES.sample(lines), longest.sample(f"{len(PATHS)} attacks")]
    for path in FLOODS:
        longest = LongestTurn()
        with hostile_vendor(MESSAGES) as url:
            lines = await _attack(url, path, MILLION_SECS, longest)
        name = f"{MESSAGES:,} messages at once, {path}"
        figures += [longest.sample(name), Row(label=f"{name}: lines of the log", at_most=1).sample(lines)]
    return figures


async def _attack(url: str, path: str, secs: float, longest: LongestTurn) -> int:
    """How many lines the log got in so many seconds; the turns of the loop are watched."""
    handler = _Lines()
    logging.getLogger().addHandler(handler)
    try:
        async with attacked(url, path):
            with longest.watched():
                await asyncio.sleep(secs)
    finally:
        logging.getLogger().removeHandler(handler)
    return handler.count
