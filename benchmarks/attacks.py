"""Floods a hub from outside and from inside. Measures how long a normal client waits during a flood. Also measures
the hub's memory before and after the flood, and the peak of the memory.

`python -m benchmarks.attacks NAME PORT FOLDER` runs one flood against a hub while the file `go` exists in the folder.
The process writes `ready` when its server listens, and one byte to standard output for each success.
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

import aiomqtt
from msgspec import Struct

from appliance.adapters.matter.simulator import LAMP, MatterSimulator, simulated_node
from benchmarks._client import UPGRADE, Client, ask, percentile, request, wait_until_ready
from benchmarks._frame import Row, Sample
from benchmarks._processes import Running, free_port, hub
from tests.adapters.mqtt.broker import PASSWORD, USER, OwnBroker, running
from tests.fakes import mqtt_broker

FLOOD_SECS = float(os.environ.get("FLOOD_SECS", "60"))
"""Duration of each flood, in seconds."""

REST_SECS = 30.0
"""Within this number of seconds after a flood, the hub must return the memory."""

BROKER_DEVICES, BROKER_SETTLE_SECS = 2_000, 25.0
PAUSE_SECS = 0.01
MAX_WAIT_MS, MAX_GAINED_MB, MAX_STOP_SECS = 50, 10, 5
WAIT, GAINED = "GET /health, p99", f"memory gained {REST_SECS:g} s later"

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
HALF_HEAD = b"GET / HTTP/1.1\r\nX: ".ljust(8000, b"x")
HALF_BODY = request("POST", "/groups/g/members", extra="Content-Length: 65000\r\n").ljust(64_000)
HANDSHAKE = request("GET", "/events", extra=UPGRADE)
CLOSE_FRAME = b"\x88\x82\0\0\0\0\x03\xe8"
NO_KEY = b"GET /devices HTTP/1.1\r\nHost: x\r\n\r\n"


class Attack:
    """The hub that a flood attacks, and the files whose existence starts and ends the flood."""

    def __init__(self, port: int, folder: Path) -> None:
        self.port = port
        self.folder = folder
        self.server_port = int((folder / "port").read_text())

    @property
    def continues(self) -> bool:
        """Whether the flood is allowed to run now."""
        return (self.folder / "go").exists()

    async def begin(self) -> None:
        """Wait until the flood is allowed to run."""
        (self.folder / "ready").touch()
        while not self.continues:  # noqa: ASYNC110 - another process creates the file
            await asyncio.sleep(0.02)

    def count(self, successes: int = 1) -> None:
        """Count successes: requests that the hub has answered, or connections that it has accepted."""
        os.write(sys.stdout.fileno(), b"." * successes)


Flooding = Callable[[Attack], Coroutine[Any, Any, None]]


async def flood_connections(
    first: bytes, answer: bytes, last: bytes, count: int, stay_secs: float, pause_secs: float, attack: Attack
) -> None:
    """Repeatedly open connections, send `first`, read the answer, and wait. Afterwards, send `last`, or reset the
    connections."""
    while attack.continues:
        made = await asyncio.gather(*(_begin(first, answer, attack.port) for _ in range(count)))
        opened = [each for each in made if each is not None]
        attack.count(len(opened))
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


async def _begin(first: bytes, answer: bytes, port: int) -> asyncio.StreamWriter | None:
    """Open a connection, and send `first`. Return None if the hub does not answer with `answer`."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(first)
        if answer and not (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 " + answer):
            writer.close()
            return None
    except (OSError, asyncio.IncompleteReadError):
        return None
    return writer


async def run_scenes(attack: Attack) -> None:
    """From 16 clients, run a scene that fills its memory, one execution after another."""

    async def run_them() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", attack.port)
        while attack.continues:
            writer.write(request("POST", "/scenes/busy/execute"))
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split()[0]))
            attack.count(head.startswith(b"HTTP/1.1 200"))
        writer.close()

    await asyncio.gather(*(run_them() for _ in range(16)))


async def restart_adapters(attack: Attack) -> None:
    """Repeatedly replace the file of a kind in Lua, and reload the adapters."""
    file = attack.folder / "config/adapters/restarted.lua"
    for number in itertools.count():
        if not attack.continues:
            break
        await asyncio.to_thread(file.write_text, KIND % number)
        await asyncio.to_thread(ask, attack.port, "POST", "/adapters/reload")
        attack.count()
        await asyncio.sleep(0.1)


async def send_commands(attack: Attack) -> None:
    """Act as a broker, and send commands to the hub's own device. Count the results."""
    broker = OwnBroker(attack.folder)
    broker.port = attack.server_port
    payload = json.dumps({"capability": "power", "action": "toggle"}).ljust(60_000)
    async with (
        running(broker),
        broker.client("attacker") as client,
        broker.client("reader") as reader,
        asyncio.TaskGroup() as tasks,
    ):
        await reader.subscribe("lares/+/devices/+/result")
        tasks.create_task(_count_messages(reader, attack))
        while True:
            await attack.begin()
            for topic in [each for each in broker.retained if each.endswith("virtual:lamp/state")]:
                for _ in range(100):
                    await client.publish(topic.removesuffix("state") + "set", payload)
            await asyncio.sleep(0.1)


async def _count_messages(reader: aiomqtt.Client, attack: Attack) -> None:
    async for _ in reader.messages:
        attack.count()


async def announce_devices(attack: Attack) -> None:
    """Act as a broker that sends announcements without end to a section that exists only during the flood. Count the
    announcements."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await mqtt_broker.read_packet(reader)
            is_flooded = attack.continues
            writer.write(mqtt_broker.packet(mqtt_broker.CONNACK, b"\0\0") + _announcement(0))
            reading = asyncio.ensure_future(_acknowledge(reader, writer))
            for number in itertools.count(1):
                if not (is_flooded and attack.continues):
                    break
                writer.write(b"".join(_announcement(100 * number + each) for each in range(100)))
                await writer.drain()
                attack.count(100)
            await reading
        writer.close()

    section = {"kind": "mqtt", "values": {"host": "127.0.0.1", "port": attack.server_port}}
    async with await asyncio.start_server(serve, "127.0.0.1", attack.server_port):
        while True:
            await attack.begin()
            await asyncio.to_thread(ask, attack.port, "PUT", "/files/sections/flooded", json.dumps(section).encode())
            while attack.continues:  # noqa: ASYNC110 - another process deletes the file
                await asyncio.sleep(0.02)
            await asyncio.to_thread(ask, attack.port, "DELETE", "/files/sections/flooded")


async def lose_broker(attack: Attack) -> None:
    """Act as a broker with 2,000 devices that sends their states without end, and that disappears when the flood
    ends. Count the states."""
    readers: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await mqtt_broker.read_packet(reader)
            writer.write(mqtt_broker.packet(mqtt_broker.CONNACK, b"\0\0"))
            readers.add(asyncio.create_task(_acknowledge(reader, writer)))
            writer.write(b"".join(_announcement(number) for number in range(BROKER_DEVICES)))
            await asyncio.sleep(BROKER_SETTLE_SECS / 2)
            writer.write(b"".join(_state(number) for number in range(BROKER_DEVICES)))
            sent = 0
            while attack.continues or not sent:
                if attack.continues:
                    writer.write(b"".join(_state(sent + each) for each in range(100)))
                    await writer.drain()
                    attack.count(100)
                    sent += 100
                else:
                    await asyncio.sleep(0.02)
        writer.transport.abort()

    async with await asyncio.start_server(serve, "127.0.0.1", attack.server_port):
        await attack.begin()
        while attack.continues:  # noqa: ASYNC110 - another process deletes the file
            await asyncio.sleep(0.02)
        for each in readers:
            each.cancel()
    await attack.begin()


def _state(number: int) -> bytes:
    topic = mqtt_broker.text(f"f/{number % BROKER_DEVICES}")
    return mqtt_broker.packet(mqtt_broker.PUBLISH, topic, f"{number:<400}".encode())


def _announcement(number: int) -> bytes:
    config = {"state_topic": f"f/{number}", "device": {"ids": [f"f{number}"]}, "unique_id": f"u{number}",
              "value_template": "{{ value }}"}  # fmt: skip
    topic = mqtt_broker.text(f"homeassistant/sensor/f{number}/config")
    return mqtt_broker.packet(mqtt_broker.PUBLISH, topic, json.dumps(config).encode(), flags=1)


async def _acknowledge(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Acknowledge each message and subscription until the connection ends."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        while True:
            kind, flags, fields = await mqtt_broker.read_packet(reader)
            if kind == mqtt_broker.PUBLISH and flags & 0x06:
                fields.text()
                writer.write(mqtt_broker.packet(mqtt_broker.PUBACK, fields.take(2)))
            elif kind == mqtt_broker.SUBSCRIBE:
                number, granted = fields.take(2), 0
                while fields.has_more:
                    fields.text(), fields.take(1)
                    granted += 1
                writer.write(mqtt_broker.packet(mqtt_broker.SUBACK, number, bytes(granted)))
            elif kind == mqtt_broker.PINGREQ:
                writer.write(mqtt_broker.packet(mqtt_broker.PINGRESP))


async def add_nodes(attack: Attack) -> None:
    """Act as a Matter server that reports new nodes during the flood, and removes these nodes afterwards. Count the
    hub's devices."""
    async with MatterSimulator(port=attack.server_port) as server:
        while True:
            await attack.begin()
            for number in itertools.count(10):
                if not attack.continues:
                    break
                await server.add(simulated_node(number, f"Lamp {number}", LAMP))
                await asyncio.sleep(0)
            attack.count(len(json.loads(await asyncio.to_thread(ask, attack.port, "GET", "/devices"))))
            for number in [each for each in server.nodes if each >= 10]:
                await server.remove(number)


async def _run(flood: Flood, attack: Attack) -> None:
    """Run the flood whenever it is allowed to run, until the process is ended."""
    while True:
        if not flood.is_server:
            await attack.begin()
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await flood.run(attack)


class Flood(Struct, frozen=True):
    """A flood, and the hub configuration for the flood. If the flood needs a server, the server runs all the time.
    The flood begins `settle_secs` after the hub's start."""

    label: str
    run: Flooding
    config: str = ""
    is_server: bool = False
    settle_secs: float = 3.0


def _at_once(first: bytes, stay_secs: float = 0.2, pause_secs: float = 1.1) -> Flooding:
    return functools.partial(flood_connections, first, b"", b"", 400, stay_secs, pause_secs)


def _in_turn(first: bytes, answer: bytes, last: bytes = b"") -> Flooding:
    return functools.partial(flood_connections, first, answer, last, 4, 0, 0)


FLOODS: Mapping[str, Flood] = {
    "connects": Flood("connections that end without a request", _at_once(b"", pause_secs=0)),
    "heads": Flood("half heads", _at_once(HALF_HEAD)),
    "bodies": Flood("half bodies of 64 kB with a key", _at_once(HALF_BODY, stay_secs=1.0)),
    "closed": Flood("event streams that end by a Close frame", _in_turn(HANDSHAKE, b"101", CLOSE_FRAME)),
    "reset": Flood("event streams that are reset", _in_turn(HANDSHAKE, b"101")),
    "keys": Flood("requests without a key", _in_turn(NO_KEY, b"401")),
    "scenes": Flood("executions of Lua", run_scenes, "[scenes]\nenabled = true\n"),
    "adapters": Flood("sections that are replaced", restart_adapters, '[adapters.restarted]\ntype = "restarted"\n'),
    "commands": Flood(
        "commands over MQTT",
        send_commands,
        f'[adapters.mqtt]\nhost = "127.0.0.1"\nport = PORT\nusername = "{USER}"\npassword = "{PASSWORD}"\n'
        'publish = true\n[adapters.virtual]\n[[adapters.virtual.devices]]\nid = "lamp"\n'
        'attributes = { power = "off" }\n',
        is_server=True,
    ),
    "announcements": Flood(
        "announcements over MQTT",
        announce_devices,
        '[adapters.mqtt]\nhost = "127.0.0.1"\nport = PORT\n',
        is_server=True,
    ),
    "lost": Flood(
        "states over MQTT, then no broker",
        lose_broker,
        '[adapters.mqtt]\nhost = "127.0.0.1"\nport = PORT\n',
        is_server=True,
        settle_secs=BROKER_SETTLE_SECS,
    ),
    "nodes": Flood(
        "nodes of a Matter server",
        add_nodes,
        '[adapters.matter]\nurl = "ws://127.0.0.1:PORT/ws"\n',
        is_server=True,
    ),
}
"""Maps the names of floods on the command line to the floods."""


WORST = f"the worst of {len(FLOODS)} floods"
WORST_WAIT = Row(label=f"{WORST}: GET /health, p99", unit="ms", at_most=MAX_WAIT_MS, is_felt=True)
WORST_GAIN = Row(label=f"{WORST}: {GAINED}", unit="MB", at_most=MAX_GAINED_MB, is_felt=True)


def measure(_rounds: int) -> Iterator[Sample]:
    """Run each flood once, each against a separate hub."""
    names = os.environ.get("FLOODS", ",".join(FLOODS)).split(",")
    waits, gains = list[float](), list[float]()
    for name in names:
        with tempfile.TemporaryDirectory(prefix="lares-flood-") as folder:
            for sample in _measure(name, FLOODS[name], Path(folder)):
                row, figure, *_ = sample
                waits += [figure] * row.label.endswith(WAIT)
                gains += [figure] * row.label.endswith(GAINED)
                yield sample
    if set(names) == set(FLOODS):
        yield WORST_WAIT.sample(max(waits))
        yield WORST_GAIN.sample(max(gains))


def _measure(name: str, flood: Flood, folder: Path) -> Iterator[Sample]:
    for part, text in (("scenes/busy", SCENE), ("adapters/restarted", KIND % 0)):
        file = folder / f"config/{part}.lua"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    port, hub_port = free_port(), free_port()
    (folder / "port").write_text(str(port))
    go, done = folder / "go", folder / "done"
    command = [sys.executable, "-m", "benchmarks.attacks", name, str(hub_port), str(folder)]
    with done.open("wb") as output, subprocess.Popen(command, stdout=output) as attack:
        try:
            while not (folder / "ready").exists() and attack.poll() is None:
                time.sleep(0.02)
            with hub(flood.config.replace("PORT", str(port)), folder=folder, port=hub_port) as home:
                wait_until_ready(home.port)
                _ask_while(home, flood.settle_secs)
                before = home.resident_mb()
                go.touch()
                waits, peak = _ask_while(home, FLOOD_SECS)
                go.unlink()
                time.sleep(REST_SECS)
                after = home.resident_mb()
                go.touch()
                _ask_while(home, 3.0)
                began = time.perf_counter()
            stop_secs = time.perf_counter() - began
        finally:
            attack.terminate()
    label, successes = flood.label, done.stat().st_size
    if not successes:
        raise RuntimeError(f"{label}: the flood did nothing")
    yield Row(label=f"{label}: successes", unit="").sample(successes)
    yield Row(label=f"{label}: {WAIT}", unit="ms", at_most=MAX_WAIT_MS).sample(percentile(waits, 99))
    yield Row(label=f"{label}: GET /health, longest", unit="ms").sample(max(waits))
    yield Row(label=f"{label}: memory before", unit="MB").sample(before)
    yield Row(label=f"{label}: memory at the peak", unit="MB").sample(peak)
    yield Row(label=f"{label}: {GAINED}", unit="MB", at_most=MAX_GAINED_MB).sample(after - before)
    yield Row(label=f"{label}: a stop meanwhile", unit="s", at_most=MAX_STOP_SECS).sample(stop_secs)


def _ask_while(home: Running, seconds: float) -> tuple[list[float], float]:
    """Request `/health` on one connection. Return the waiting times in ms, and the peak of memory in MB."""
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
    asyncio.run(_run(FLOODS[sys.argv[1]], Attack(int(sys.argv[2]), Path(sys.argv[3]))))
