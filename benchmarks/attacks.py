"""Attacks from outside: how long a good client waits meanwhile (p99 below 50 ms), and the memory that they cost."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks._client import one, percentile, read_answer, request
from benchmarks._frame import Row, Sample
from benchmarks._processes import hub

ATTACK_SECS, PAUSE_SECS = 6.0, 0.005
MAX_P99_MS, MAX_GROWTH_MB = 50, 20
ATTACKS = {
    "connects": "600 connections every 150 ms from one address",
    "idle": "2,000 idle connections from four addresses",
}


def measure(_rounds: int) -> Iterator[Sample]:
    """A good client's waits during each attack, and what the hub's memory gained by it."""
    for name, label in ATTACKS.items():
        with hub(is_watched=True) as home:
            asyncio.run(_ask_while(home.port, time.perf_counter() + 1.0))
            before = home.resident_mb()
            home.forget_turns()
            attack = subprocess.Popen([sys.executable, "-m", "benchmarks.attacks", name, str(home.port)])
            kept, anew = asyncio.run(_ask_while(home.port, time.perf_counter() + ATTACK_SECS))
            attack.terminate()
            attack.wait()
            waits = {"a change on a kept connection": kept, "a reading on a new connection": anew}
            for what, durations in waits.items():
                row = Row(label=f"{label}: {what}, p99", unit="ms", at_most=MAX_P99_MS)
                yield row.sample(percentile(durations, 99))
            growth = Row(label=f"{label}: memory gained", unit="MB", at_most=MAX_GROWTH_MB)
            yield growth.sample(home.peak_mb() - before)
            yield home.longest_turn(label)


async def _ask_while(port: int, until: float) -> tuple[list[float], list[float]]:
    """How long each change on a kept connection takes, and each reading on a new one, in ms."""
    kept: list[float] = []
    anew: list[float] = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (began := time.perf_counter()) < until:
        writer.write(request("POST", "/rooms", b'{"id":"den","name":"Den %d"}' % (len(kept) % 10)))
        await read_answer(reader)
        kept.append(1000 * (time.perf_counter() - began))
        began = time.perf_counter()
        await one(port, request("GET", "/devices"))
        anew.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(PAUSE_SECS)
    writer.close()
    return kept, anew


def _dial(port: int, peer: str) -> socket.socket:
    """A connection that was begun from this address; nobody waits for it."""
    dialled = socket.socket()
    dialled.setblocking(False)
    dialled.bind((peer, 0))
    dialled.connect_ex(("127.0.0.1", port))
    return dialled


def attack(name: str, port: int) -> None:
    """Attack until the process is ended: connect and leave, or stay and connect again when closed."""
    count, stay_secs, addresses = (600, 0.15, 1) if name == "connects" else (2000, 1.0, 4)
    dialled: list[socket.socket] = []
    while True:
        with contextlib.suppress(OSError):
            for number in range(count):
                dialled.append(_dial(port, f"127.0.0.{2 + number % addresses}"))
                if addresses > 1 and number % 50 == 0:
                    time.sleep(0.01)
        time.sleep(stay_secs)
        leaving = dialled if addresses == 1 else dialled[:500]
        for each in leaving:
            each.close()
        del dialled[: len(leaving)]


if __name__ == "__main__":
    attack(sys.argv[1], int(sys.argv[2]))
