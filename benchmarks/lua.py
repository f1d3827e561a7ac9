"""Lua for users: a scene over HTTP, the memory of a sleeping execution, and a hub with scripts that spin."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks._client import Client, ask, request, wait_until_ready
from benchmarks._frame import Row, Sample
from benchmarks._processes import hub, lamps, peer

SCENES, SLEEPERS, SPINNERS = 200, 300, 16
FILE = 'return {{ id = "{name}", name = "{name}", mode = {{ type = "parallel", max = 400 }}, execute = {body} }}'
TWO = """function(ctx)
  ctx:command("lamp0:light:0", { capability = "power", action = "on" })
  ctx:command("lamp0:light:1", { capability = "power", action = "on" })
end"""
BODIES = {
    "nothing": "function(ctx) end",
    "two": TWO,
    "sleep": "function(ctx) ctx:sleep(3000) end",
    "spin": "function(ctx) while true do end end",
}
NOTHING = Row(label="a scene that does nothing, p50", unit="ms")
SCENE = Row(label="a scene of two commands, p50", unit="ms")
SLEEPING = Row(label=f"each of {SLEEPERS} executions that sleep, hub and worker", unit="KiB", at_most=120)
SPUN = Row(label=f"a scene of two commands after {SPINNERS} scripts began to spin, p50", unit="ms")


def measure(rounds: int) -> Iterator[Sample]:
    """Measure one hub with four scenes."""
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder, peer("lamps", "1", "2") as ports:
        scenes = Path(folder, "config", "scenes")
        scenes.mkdir(parents=True)
        for name, body in BODIES.items():
            (scenes / f"{name}.lua").write_text(FILE.format(name=name, body=body))
        with hub(lamps(ports), folder=Path(folder)) as home:
            wait_until_ready(home.port)
            for _ in range(rounds):
                yield NOTHING.sample(_play(home.port, "nothing"))
                yield SCENE.sample(_play(home.port, "two"))
            before = home.pss_mb()
            sleepers = _begin(home.port, "sleep", SLEEPERS)
            yield SLEEPING.sample((home.pss_mb() - before) * 1e6 / 1024 / SLEEPERS)
            for each in sleepers:
                each.close()
            spinners = _begin(home.port, "spin", SPINNERS)
            yield SPUN.sample(_play(home.port, "two"))
            for each in spinners:
                each.close()


def _play(port: int, name: str) -> float:
    """Milliseconds from the request to the end of the scene, p50."""
    durations = []
    for _ in range(SCENES):
        began = time.perf_counter()
        ask(port, "POST", f"/scenes/{name}/execute")
        durations.append(1000 * (time.perf_counter() - began))
    return statistics.median(durations)


def _begin(port: int, name: str, count: int) -> list[Client]:
    """Clients that wait for the end of a scene each."""
    clients = [Client(port) for _ in range(count)]
    for each in clients:
        each.send(request("POST", f"/scenes/{name}/execute"))
    time.sleep(2)
    return clients
