"""Attacks from outside: how long a good client waits meanwhile (p99 below 50 ms), and the memory that they cost."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks._client import Client, ask, percentile
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
            _ask_while(home.port, time.perf_counter() + 1.0)
            before = home.resident_mb()
            home.forget_turns()
            attack = subprocess.Popen([sys.executable, "-m", "benchmarks.attacks", name, str(home.port)])
            waits = _ask_while(home.port, time.perf_counter() + ATTACK_SECS)
            attack.terminate()
            attack.wait()
            for what, durations in waits.items():
                row = Row(label=f"{label}: {what}, p99", unit="ms", at_most=MAX_P99_MS)
                yield row.sample(percentile(durations, 99))
            growth = Row(label=f"{label}: memory gained", unit="MB", at_most=MAX_GROWTH_MB)
            yield growth.sample(home.resident_mb("VmHWM") - before)
            yield home.longest_turn(label)


def _ask_while(port: int, until: float) -> dict[str, list[float]]:
    """How long each change on a kept connection takes, and each reading on a new one, in ms."""
    kept: list[float] = []
    anew: list[float] = []
    client = Client(port)
    while (began := time.perf_counter()) < until:
        client.ask("POST", "/rooms", b'{"id":"den","name":"Den %d"}' % (len(kept) % 10))
        kept.append(1000 * (time.perf_counter() - began))
        began = time.perf_counter()
        ask(port, "GET", "/devices")
        anew.append(1000 * (time.perf_counter() - began))
        time.sleep(PAUSE_SECS)
    client.close()
    return {"a change on a kept connection": kept, "a reading on a new connection": anew}


def attack(name: str, port: int) -> None:
    """Attack until the process is ended: connect and leave, or stay and connect again when closed."""
    count, stay_secs, addresses = (600, 0.15, 1) if name == "connects" else (2000, 1.0, 4)
    dialled: list[socket.socket] = []
    while True:
        with contextlib.suppress(OSError):
            for number in range(count):
                dialled.append(socket.socket())
                dialled[-1].setblocking(False)
                dialled[-1].bind((f"127.0.0.{2 + number % addresses}", 0))
                dialled[-1].connect_ex(("127.0.0.1", port))
                if addresses > 1 and number % 50 == 0:
                    time.sleep(0.01)
        time.sleep(stay_secs)
        leaving = dialled if addresses == 1 else dialled[:500]
        for each in leaving:
            each.close()
        del dialled[: len(leaving)]


if __name__ == "__main__":
    attack(sys.argv[1], int(sys.argv[2]))
