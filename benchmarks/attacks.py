"""Attacks from outside: how long a good client waits meanwhile (p99 below 50 ms), and the memory that they cost."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping

from benchmarks._client import one, percentile, request
from benchmarks._frame import Row, Sample
from benchmarks._lag import watched
from benchmarks._processes import KEY, hub

ATTACK_SECS = 6.0
MAX_P99_MS = 50
MAX_GROWTH_MB = 20
PAUSE_SECS = 0.005
PEER = "127.0.0.2"
"""The attacker's address; the good client has another."""

ATTACK = "import asyncio, sys; from benchmarks.attacks import run; asyncio.run(run(sys.argv[1], int(sys.argv[2])))"
"""The attack comes from a process of its own, so that the good client waits for the hub and not for it."""

LARGE_HOME = "entries"
ENTRIES, FILLERS = 25_000, 50

Attack = Callable[[int], Awaitable[None]]


def measure(_rounds: int) -> Iterator[Sample]:
    """A good client's waits during each attack, and what the hub's memory gained by it."""
    for name, (label, _) in ATTACKS.items():
        with hub() as home:
            asyncio.run(_prepare(name, home.port))
            before = home.resident_mb()
            command = [sys.executable, "-c", ATTACK, name, str(home.port)]
            with watched(home.port) as lags, subprocess.Popen(command, stdout=subprocess.PIPE) as attack:
                assert attack.stdout is not None
                attack.stdout.readline()
                kept, anew = asyncio.run(_ask_while(home.port, time.perf_counter() + ATTACK_SECS))
                attack.terminate()
            yield from _samples(label, home.peak_mb() - before, kept, anew)
            yield from lags.samples(label)


async def _prepare(name: str, port: int) -> None:
    """Let the hub warm up, and fill its home where the attack is one on a large home."""
    if name == LARGE_HOME:
        await _fill(port)
    await _ask_while(port, time.perf_counter() + 1.0)


def _samples(label: str, growth: float, kept: list[float], anew: list[float]) -> Iterator[Sample]:
    waits = {"a change on a kept connection": kept, "a reading on a new connection": anew}
    for what, durations in waits.items():
        row = Row(label=f"{label}: {what}, p99", unit="ms", at_most=MAX_P99_MS)
        yield row.sample(percentile(durations, 99))
    why = "one check of a key that there may be takes 19 MiB while it lasts"
    yield Row(label=f"{label}: memory gained", unit="MB", at_most=MAX_GROWTH_MB, why=why).sample(growth)


async def _ask_while(port: int, until: float) -> tuple[list[float], list[float]]:
    """How long each change on a kept connection takes, and each reading on a new one, in ms."""
    kept: list[float] = []
    anew: list[float] = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (began := time.perf_counter()) < until:
        writer.write(request("POST", "/rooms", b'{"id":"den","name":"Den %d"}' % (len(kept) % 10)))
        await _read(reader)
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


async def _smuggle(port: int) -> None:
    """Malformed requests, one connection each: chunks in HTTP/1.0, sizes with blanks, lengths beside chunks."""
    head = f"POST /rooms HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n".encode()
    bodies = [
        head.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        head + b"Transfer-Encoding: chunked\r\n\r\n 17 \r\n",
        head + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        head + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 5000,
    ]

    async def send() -> None:
        while True:
            for body in bodies:
                with contextlib.suppress(OSError):
                    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(PEER, 0))
                    writer.write(body)
                    await reader.read(4096)
                    writer.close()

    await asyncio.gather(*(send() for _ in range(20)))


async def _guess(port: int) -> None:
    """Guesses at a key that there is, over 20 kept connections."""
    made = json.loads(await one(port, request("POST", "/auth/keys", b'{"label":"x","role":"read"}')))["key"]
    stem = made[: -len("0" * 43)]

    async def send(client: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(PEER, 0))
        for number in range(1 << 30):
            token = f"{stem}{client:03}{number:040}"
            writer.write(request("GET", "/devices").replace(KEY.encode(), token.encode()))
            await _read(reader)

    await asyncio.gather(*(send(client) for client in range(20)))


async def _ask_as_a_page(port: int) -> None:
    """What a page of the Internet can send by DNS rebinding: requests without a key, under its own name."""
    paths = (
        "/health",
        "/ready",
        "/",
        "/dashboard/",
        "/devices",
        "/rooms",
        "/diagnostics",
        "/openapi.json",
        "/nothing",
    )

    async def send() -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(PEER, 0))
                for number in range(1000):
                    path = paths[number % len(paths)]
                    writer.write(
                        f"GET {path} HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n\r\n".encode()
                    )
                    await _read(reader)
                writer.close()

    await asyncio.gather(*(send() for _ in range(6)))


async def _fill(port: int) -> None:
    """Make a home of so many rooms."""

    async def send(client: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in range(client, ENTRIES, FILLERS):
            writer.write(request("POST", "/rooms", b'{"id":"room %d","name":"Room"}' % number))
            await _read(reader)
        writer.close()

    await asyncio.gather(*(send(client) for client in range(FILLERS)))


async def _change_all(port: int) -> None:
    """Rename one room after another of a large home, over four connections."""

    async def send(client: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(PEER, 0))
        for number in range(1 << 30):
            body = b'{"id":"room %d","name":"Room %d"}' % (number * 4 % ENTRIES + client, number)
            writer.write(request("POST", "/rooms", body))
            await _read(reader)

    await asyncio.gather(*(send(client) for client in range(4)))


async def _read(reader: asyncio.StreamReader) -> None:
    """Take one response."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length or 0))


ATTACKS: Mapping[str, tuple[str, Attack]] = {
    "connects": ("600 connections every 150 ms from one address", _connect_and_leave),
    "idle": ("2,000 idle connections from four addresses", _stay_idle),
    "smuggling": ("malformed framing over 20 connections at once", _smuggle),
    LARGE_HOME: (f"changes over 4 connections in a home of {ENTRIES:,} entries", _change_all),
    "page": ("requests without a key over 6 connections, as a page by DNS rebinding", _ask_as_a_page),
    "guesses": ("guesses at a key over 20 connections", _guess),
}
"""What is done to the hub."""
