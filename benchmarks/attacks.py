"""Attacks from outside: how long a good client waits meanwhile (p99 below 50 ms), and the memory that they cost."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping

from benchmarks._client import one, percentile, read_answer, request
from benchmarks._frame import Row, Sample
from benchmarks._lag import watched
from benchmarks._processes import hub

ATTACK_SECS = 6.0
MAX_P99_MS = 50
MAX_GROWTH_MB = 20
PAUSE_SECS = 0.005
PEER = "127.0.0.2"
"""The attacker's address; the good client has another."""

ATTACK = "import asyncio, sys; from benchmarks.attacks import run; asyncio.run(run(sys.argv[1], int(sys.argv[2])))"
"""The attack comes from a process of its own, so that the good client waits for the hub and not for it."""

Attack = Callable[[int], Awaitable[None]]


def measure(_rounds: int) -> Iterator[Sample]:
    """A good client's waits during each attack, and what the hub's memory gained by it."""
    for name, (label, _) in ATTACKS.items():
        with hub() as home:
            asyncio.run(_ask_while(home.port, time.perf_counter() + 1.0))
            before = home.resident_mb()
            command = [sys.executable, "-c", ATTACK, name, str(home.port)]
            with watched(home.port) as lags, subprocess.Popen(command, stdout=subprocess.PIPE) as attack:
                assert attack.stdout is not None
                attack.stdout.readline()
                kept, anew = asyncio.run(_ask_while(home.port, time.perf_counter() + ATTACK_SECS))
                attack.terminate()
            yield from _samples(label, home.peak_mb() - before, kept, anew)
            yield from lags.samples(label)


def _samples(label: str, growth: float, kept: list[float], anew: list[float]) -> Iterator[Sample]:
    waits = {"a change on a kept connection": kept, "a reading on a new connection": anew}
    for what, durations in waits.items():
        row = Row(label=f"{label}: {what}, p99", unit="ms", at_most=MAX_P99_MS)
        yield row.sample(percentile(durations, 99))
    yield Row(label=f"{label}: memory gained", unit="MB", at_most=MAX_GROWTH_MB).sample(growth)


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


async def run(name: str, port: int) -> None:
    """Begin the attack, say so, and go on until the process is ended."""
    print("go", flush=True)
    await ATTACKS[name][1](port)


def _dial(port: int, peer: str = PEER) -> socket.socket:
    """A connection that was begun from this address; nobody waits for it."""
    dialled = socket.socket()
    dialled.setblocking(False)
    dialled.bind((peer, 0))
    dialled.connect_ex(("127.0.0.1", port))
    return dialled


async def _connect_and_leave(port: int) -> None:
    """600 connections every 150 ms, which are dropped with the next 600."""
    open_ones: list[socket.socket] = []
    while True:
        for each in open_ones:
            each.close()
        with contextlib.suppress(OSError):
            open_ones = [_dial(port) for _ in range(600)]
        await asyncio.sleep(0.15)


async def _stay_idle(port: int) -> None:
    """2,000 connections from four addresses that say half a head or nothing, opened again when they are closed."""
    open_ones: list[socket.socket] = []
    while True:
        with contextlib.suppress(OSError):
            for number in range(2000):
                open_ones.append(_dial(port, f"127.0.0.{2 + number % 4}"))
                if number % 50 == 0:
                    await asyncio.sleep(0.01)
        await asyncio.sleep(1.0)
        for each in open_ones[:500]:
            each.close()
        del open_ones[:500]


ATTACKS: Mapping[str, tuple[str, Attack]] = {
    "connects": ("600 connections every 150 ms from one address", _connect_and_leave),
    "idle": ("2,000 idle connections from four addresses", _stay_idle),
}
"""What is done to the hub."""
