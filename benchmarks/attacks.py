"""Floods from outside and inside: the waits of a good client meanwhile, and memory before, at the peak, and after.

`python -m benchmarks.attacks NAME PORT FOLDER` runs one flood against a hub until it is ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from appliance.adapters.matter.simulator import LAMP, MatterSimulator, simulated_node
from benchmarks._client import UPGRADE, Client, ask, percentile, request
from benchmarks._frame import Row, Sample
from benchmarks._processes import Running, free_port, hub
from tests.adapters.mqtt.broker import PASSWORD, USER, OwnBroker

FLOOD_SECS = float(os.environ.get("FLOOD_SECS", "60"))
"""The time of each flood."""

REST_SECS = 30.0
"""Seconds within which memory must have returned."""

PAUSE_SECS = 0.01
MAX_WAIT_MS, MAX_GAINED_MB = 50, 10

SCENE = """return { id = "busy", name = "Busy", mode = { type = "parallel", max = 64 }, execute = function(ctx)
  local kept = {}
  for i = 1, 20000 do kept[i] = { i } end
  ctx:sleep(0.01)
end }"""
KIND = """return { name = "Restarted %d", poll = function(ctx)
  local devices = {}
  for i = 1, 100 do devices[i] = { id = "d" .. i, kind = "Switch", attributes = { power = "on" } } end
  return devices
end }"""
HALF_HEAD = b"GET / HTTP/1.1\r\nHo"
HALF_BODY = request("POST", "/groups/g/members", extra="Content-Length: 65000\r\n").ljust(64_000)
HANDSHAKE = request("GET", "/events", extra=UPGRADE)
CLOSE_FRAME = b"\x88\x82\0\0\0\0\x03\xe8"
NO_KEY = b"GET /devices HTTP/1.1\r\nHost: x\r\n\r\n"


async def flood_connections(
    first: bytes, last: bytes, count: int, stay_secs: float, pause_secs: float, port: int, _: Path
) -> None:
    """Open connections, send something, stay, send something more or reset them, and begin again."""
    while True:
        opened = [each for each in await asyncio.gather(*(_begin(first, port) for _ in range(count))) if each]
        await asyncio.sleep(stay_secs)
        for each in opened:
            with contextlib.suppress(OSError):
                if last:
                    each.write(last)
                elif first == HANDSHAKE:
                    lingering = struct.pack("ii", 1, 0)
                    each.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, lingering)
                each.close()
        await asyncio.sleep(pause_secs)


async def _begin(first: bytes, port: int) -> asyncio.StreamWriter | None:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(first)
        if first in (HANDSHAKE, NO_KEY):
            await reader.readuntil(b"\r\n\r\n")
    except (OSError, asyncio.IncompleteReadError):
        return None
    return writer


async def run_scenes(port: int, _: Path) -> None:
    """Let 16 clients run a scene that fills its memory, one execution after another."""

    async def run_them() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while True:
            writer.write(request("POST", "/scenes/busy/execute"))
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split()[0]))

    await asyncio.gather(*(run_them() for _ in range(16)))


async def restart_adapters(port: int, folder: Path) -> None:
    """Replace the file of a kind in Lua, and reload it."""
    file = folder / "config/adapters/restarted.lua"
    for number in itertools.count():
        await asyncio.to_thread(file.write_text, KIND % number)
        await asyncio.to_thread(ask, port, "POST", "/adapters/reload")
        await asyncio.sleep(0.1)


async def send_commands(_: int, folder: Path) -> None:
    """Be a broker, and send commands to the hub's own device."""
    broker = OwnBroker(folder)
    broker.port = _read_port(folder)
    await broker.start()
    payload = json.dumps({"capability": "power", "action": "toggle"}).ljust(60_000)
    async with broker.client("attacker") as client:
        while True:
            await asyncio.sleep(0.1)
            for topic in [each for each in broker.retained if each.endswith("virtual:lamp/state")]:
                for _ in range(100):
                    await client.publish(topic.removesuffix("state") + "set", payload)


async def add_nodes(_: int, folder: Path) -> None:
    """Be a Matter server that reports new nodes without end."""
    async with MatterSimulator(port=_read_port(folder)) as server:
        for number in itertools.count(10):
            await server.add(simulated_node(number, f"Lamp {number}", LAMP))
            await asyncio.sleep(0)


def _read_port(folder: Path) -> int:
    return int((folder / "port").read_text())


Flooding = Callable[[int, Path], Coroutine[Any, Any, None]]


class Flood(Struct, frozen=True):
    """A flood, and the configuration of the hub that it needs."""

    label: str
    run: Flooding
    config: str = ""


def _at_once(first: bytes, stay_secs: float = 0.2, pause_secs: float = 1.1) -> Flooding:
    return functools.partial(flood_connections, first, b"", 400, stay_secs, pause_secs)


def _in_turn(first: bytes, last: bytes = b"") -> Flooding:
    return functools.partial(flood_connections, first, last, 4, 0, 0)


FLOODS: Mapping[str, Flood] = {
    "connects": Flood("connections that end without a request", _at_once(b"", pause_secs=0)),
    "heads": Flood("half heads", _at_once(HALF_HEAD)),
    "bodies": Flood("half bodies of 64 kB with a key", _at_once(HALF_BODY, stay_secs=1.0)),
    "closed": Flood("event streams that end by a Close frame", _in_turn(HANDSHAKE, CLOSE_FRAME)),
    "reset": Flood("event streams that are reset", _in_turn(HANDSHAKE)),
    "keys": Flood("requests without a key", _in_turn(NO_KEY)),
    "scenes": Flood("executions of Lua", run_scenes, "[scenes]\nenabled = true\n"),
    "adapters": Flood("sections that are replaced", restart_adapters, '[adapters.restarted]\ntype = "restarted"\n'),
    "commands": Flood(
        "commands over MQTT",
        send_commands,
        f'[adapters.mqtt]\nhost = "127.0.0.1"\nport = PORT\nusername = "{USER}"\npassword = "{PASSWORD}"\n'
        'publish = true\n[adapters.virtual]\n[[adapters.virtual.devices]]\nid = "lamp"\n'
        'attributes = { power = "off" }\n',
    ),
    "nodes": Flood("nodes of a Matter server", add_nodes, '[adapters.matter]\nurl = "ws://127.0.0.1:PORT/ws"\n'),
}
"""Each flood by its name on the command line."""


def measure(_rounds: int) -> Iterator[Sample]:
    """Run each flood once, against a hub of its own."""
    for name in os.environ.get("FLOODS", ",".join(FLOODS)).split(","):
        with tempfile.TemporaryDirectory(prefix="lares-flood-") as folder:
            yield from _measure(name, FLOODS[name], Path(folder))


def _measure(name: str, flood: Flood, folder: Path) -> Iterator[Sample]:
    for part, text in (("scenes/busy", SCENE), ("adapters/restarted", KIND % 0)):
        file = folder / f"config/{part}.lua"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    port = free_port()
    (folder / "port").write_text(str(port))
    command = [sys.executable, "-m", "benchmarks.attacks", name]
    with hub(flood.config.replace("PORT", str(port)), folder=folder) as home:
        _ask_while(home, 3.0)
        before = home.resident_mb()
        with subprocess.Popen([*command, str(home.port), str(folder)]) as attack:
            try:
                waits, peak = _ask_while(home, FLOOD_SECS)
            finally:
                attack.terminate()
        time.sleep(REST_SECS)
        after = home.resident_mb()
    label, gained = flood.label, f"memory gained {REST_SECS:g} s later"
    yield Row(label=f"{label}: GET /health, p99", unit="ms", at_most=MAX_WAIT_MS).sample(percentile(waits, 99))
    yield Row(label=f"{label}: GET /health, longest", unit="ms").sample(max(waits))
    yield Row(label=f"{label}: memory before", unit="MB").sample(before)
    yield Row(label=f"{label}: memory at the peak", unit="MB").sample(peak)
    yield Row(label=f"{label}: {gained}", unit="MB", at_most=MAX_GAINED_MB).sample(after - before)


def _ask_while(home: Running, seconds: float) -> tuple[list[float], float]:
    """Ask for `/health` on one connection; return the time of each answer in ms, and the most memory in MB."""
    waits, most, until = list[float](), 0.0, time.perf_counter() + seconds
    client = Client(home.port)
    while (began := time.perf_counter()) < until:
        client.ask("GET", "/health")
        waits.append(1000 * (time.perf_counter() - began))
        if len(waits) % 20 == 0:
            most = max(most, home.resident_mb())
        time.sleep(PAUSE_SECS)
    client.close()
    return waits, most


if __name__ == "__main__":
    asyncio.run(FLOODS[sys.argv[1]].run(int(sys.argv[2]), Path(sys.argv[3])))
