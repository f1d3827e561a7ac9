"""The speed of Lua as users notice it: an event at a lamp, a scene over HTTP, the memory of a sleeping execution,
and endless loops.

The floor is the cost of the same work in a minimal program. For an event at a lamp, this program decodes the strip's
push, and sends the event as JSON through a pipe to a worker with bare lupa. The worker answers with a command as
JSON. Like the hub, the program then reads and writes the lamp with aiohttp. The program's worker has no sandbox, no
limits, and normal priority. The hub's worker has low priority, so measure the ratio on an idle machine.
"""

from __future__ import annotations

import socket
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks._client import Client, ask, request, wait_until_ready
from benchmarks._frame import Row, Sample
from benchmarks._node_red import function, node_red, read_strip, request_lamp
from benchmarks._processes import hub, lamps, peer
from benchmarks.stream import strip_section, until_pushed

SCENES, SLEEPERS, SPINNERS = 200, 300, 16
PATIENCE_SECS, SETTLE_SECS, PAUSE_SECS = 20.0, 0.5, 0.01
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
RULE = """return { id = "rule", name = "Rule", mode = { type = "queued", max = 10 },
  trigger = { type = "device_state_change", device_id = "strip:light", attribute = "brightness" },
  execute = function(ctx, event)
    ctx:command("lamp0:light:0", { capability = "brightness", action = "set", value = event.value })
  end }"""
EVENTS, TURN = 300, 10
EVENT = Row(
    label="from a strip's push through Lua to a lamp, p50",
    unit="ms",
    floor="bare lupa in a worker, and two requests of aiohttp",
    at_most=1.3,
    is_felt=True,
)
NOTHING = Row(label="a scene that does nothing, p50", unit="ms")
SCENE = Row(label="a scene of two commands, p50", unit="ms")
SLEEPING = Row(label=f"memory per sleeping execution, of {SLEEPERS}", unit="KiB", at_most=120)
SPUN = Row(label=f"a scene of two commands while {SPINNERS} scripts compute endlessly, p50", unit="ms")


def measure(rounds: int) -> Iterator[Sample]:
    """Measure one hub with an automation, and one hub with four scenes."""
    yield from _measure_events(rounds)
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


def _measure_events(rounds: int) -> Iterator[Sample]:
    """Measure the hub, a bare worker, and Node-RED alternately, each with its own strip and lamp."""
    with ExitStack() as stack:
        strips = [stack.enter_context(peer("strip")) for _ in range(3)]
        reporting = [stack.enter_context(peer("reporting_lamp")) for _ in range(3)]
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lares-benchmark-")))
        (folder / "config" / "automations").mkdir(parents=True)
        (folder / "config" / "automations" / "rule.lua").write_text(RULE)
        config = "[automations]\nenabled = true\n" + strip_section(strips[0][0]) + lamps([reporting[0][0]])
        home = stack.enter_context(hub(config, folder=folder))
        until_pushed(home.port, strips[0][1])
        stack.enter_context(peer("rule", str(strips[1][0]), str(reporting[1][0])))
        body = "msg.payload = { lights: [{ brightness: Math.floor(msg.brightness * 100 / 255) }] }"
        flow = [
            *read_strip(strips[2][0], ["rule"]),
            function(
                "rule", f"msg.lamp = {reporting[2][0]}; msg.brightness = JSON.parse(msg.payload).state.bri", ["read"]
            ),
            *request_lamp("read", "GET", ["write"]),
            *request_lamp("write", "PUT", [], body),
        ]
        sides = [(strip[1], lamp[1]) for strip, lamp in zip(strips, reporting, strict=True)]
        if not stack.enter_context(node_red(flow)):
            del sides[2]
        for _ in range(rounds):
            yield EVENT.sample(*_follow(sides))


def _follow(sides: Sequence[tuple[int, int]]) -> list[float]:
    """For each side, return the median milliseconds from requesting a push until the lamp has received the command.

    A side is a pair of ports: the port that makes the strip push, and the port that reports the command. The sides
    alternate quickly, because the kernel's assignment of processes to cores lasts for some hundred events.
    """
    durations: list[list[float]] = [[] for _ in sides]
    with ExitStack() as stack:
        connected = [
            [stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_SECS)) for port in side]
            for side in sides
        ]
        time.sleep(SETTLE_SECS)
        for side in [*range(len(sides))] * (EVENTS // TURN):
            pushing, reports = connected[side]
            for _ in range(TURN):
                began = time.perf_counter()
                pushing.sendall(b"+")
                reports.recv(1)
                durations[side].append(1000 * (time.perf_counter() - began))
                time.sleep(PAUSE_SECS)
    return [*map(statistics.median, durations)]


def _play(port: int, name: str) -> float:
    """Return the median milliseconds from the request to the end of the scene."""
    durations = []
    for _ in range(SCENES):
        began = time.perf_counter()
        ask(port, "POST", f"/scenes/{name}/execute")
        durations.append(1000 * (time.perf_counter() - began))
    return statistics.median(durations)


def _begin(port: int, name: str, count: int) -> list[Client]:
    """Start clients that each wait for the end of a scene."""
    clients = [Client(port) for _ in range(count)]
    for each in clients:
        each.send(request("POST", f"/scenes/{name}/execute"))
    time.sleep(2)
    return clients
