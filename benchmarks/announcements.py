"""MQTT: 5,000 announcements at once, 300 of them rubbish, beside a reader of /health; needs mosquitto."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks._client import percentile
from benchmarks._frame import Row, Sample, Skipped
from benchmarks._processes import Running, ask, hub
from benchmarks._turns import watched_hub
from firmware import skips
from tests.adapters.mqtt.broker import PASSWORD, USER, Mosquitto, running

ANNOUNCED, RUBBISH, ENTITIES = 5_000, 300, 5
MAX_WAIT_MS = 20
SETTLE_SECS, PATIENCE_SECS = 3.0, 60.0

READER = """
import json, select, socket, sys, time
clock = ~int(sys.argv[2]) << 3 | 2
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    waits = []
    while not waits or not select.select([sys.stdin], [], [], 0.02)[0]:
        began, worked = time.perf_counter(), time.clock_gettime(clock)
        connection.sendall(b"GET /health HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
        assert connection.recv(4096)
        waited = time.perf_counter() - began
        waits.append((1000 * waited, 1000 * min(time.clock_gettime(clock) - worked, waited)))
        if len(waits) == 1:
            print("reads", flush=True)
    print(json.dumps(waits[1:]))
"""
"""A client that reads /health on a kept connection, and asks again 20 ms after each answer.

Of each wait it notes how much the hub itself worked meanwhile (processor time of its process): on a busy machine the
rest is others'.
"""

SENDER = """
import sys, json
import paho.mqtt.client as mqtt
port, user, password, announced, rubbish, entities = sys.argv[1:]
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="announcer")
client.username_pw_set(user, password)
client.max_inflight_messages_set(1000)
client.connect("127.0.0.1", int(port))
client.loop_start()
bad = ("{rubbish", "[]", "{}", json.dumps({"state_topic": 5, "unique_id": []}), "x" * 70_000,
       json.dumps({"state_topic": "s", "value_template": "{{ " + "(" * 200}),
       json.dumps({"state_topic": "s", "value_template": "{% for x in y %}"}), json.dumps({"device": "x" * 60_000}),
       json.dumps({"state_topic": "s", "availability": [{"topic": "#/x"}] * 50}), "[" * 30_000)
every = int(announced) // int(rubbish)
for n in range(int(announced)):
    device = {"identifiers": [f"bench{n // int(entities)}"], "model": "x" * 100}
    config = {"state_topic": f"bench/{n // int(entities)}", "unique_id": f"b{n}", "name": f"Value {n}",
              "unit_of_measurement": "W", "value_template": "{{ value_json.v%d | float(0) | round(1) }}" % (n % 100),
              "availability": [{"topic": "bench/status", "value_template": "{{ value_json.state }}"}],
              "device": device, "origin": {"name": "bench"}}
    is_bad = n % every == every - 1 and n // every < int(rubbish)
    payload = bad[n // every % len(bad)] if is_bad else json.dumps(config)
    last = client.publish(f"homeassistant/sensor/b{n}/t/config", payload, qos=1, retain=True)
end = {"state_topic": "bench/end", "unique_id": "end", "device": {"identifiers": ["end"]}}
client.publish("homeassistant/sensor/end/t/config", json.dumps(end), qos=1, retain=True).wait_for_publish()
client.loop_stop()
"""


def measure(_rounds: int) -> Iterator[Sample]:
    """How long readers wait while it is announced to a hub that runs, and after a start of the hub."""
    if skips.find_program("mosquitto") is None:
        raise Skipped("mosquitto is not installed")
    yield from asyncio.run(_measure())


async def _measure() -> list[Sample]:
    with tempfile.TemporaryDirectory() as folder:
        async with running(Mosquitto(Path(folder), lines="max_queued_messages 0\n")) as broker:
            section = f'[adapters.mqtt]\nhost = "127.0.0.1"\nport = {broker.port}\nusername = "{USER}"\n'
            section += f'password = "{PASSWORD}"\n'
            figures = await asyncio.to_thread(_beside, broker.port, section)
    return figures


def _beside(port: int, section: str) -> list[Sample]:
    figures: list[Sample] = []
    with watched_hub() as (command, longest_turn), hub(section, command=command) as home:
        time.sleep(SETTLE_SECS)
        os.kill(home.pid, signal.SIGUSR1)
        with _reading(home) as waits:
            began = time.perf_counter()
            _announce(port)
            figures += _wait(home.port, began, "to a hub that runs")
        figures += [*_samples(waits, "to a hub that runs"), longest_turn("to a hub that runs")]
    with watched_hub() as (command, longest_turn), hub(section, command=command) as home:
        os.kill(home.pid, signal.SIGUSR1)
        with _reading(home) as waits:
            figures += _wait(home.port, time.perf_counter(), "at a start")
        return [*figures, *_samples(waits, "at a start"), longest_turn("at a start")]


@contextlib.contextmanager
def _reading(home: Running) -> Iterator[list[tuple[float, float]]]:
    """A reader within the context; its waits, and the work of the hub in them, are there when it is left."""
    waits: list[tuple[float, float]] = []
    command = [sys.executable, "-c", READER, str(home.port), str(home.pid)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        yield waits
        waits += json.loads(reader.communicate()[0])


def _announce(port: int) -> None:
    """Announce everything, from a process of its own."""
    given = [str(each) for each in (port, USER, PASSWORD, ANNOUNCED, RUBBISH, ENTITIES)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", SENDER, *given], env=environment, check=True, stdout=subprocess.DEVNULL)


def _wait(port: int, began: float, when: str) -> Iterator[Sample]:
    """Wait until the last device is there, and a while longer."""
    while ask(port, "/devices?ids=mqtt:end").endswith(b"[]"):
        if time.perf_counter() - began > PATIENCE_SECS:
            raise RuntimeError(f"nothing of it was there after {PATIENCE_SECS:g} s")
        time.sleep(0.05)
    row = Row(label=f"{ANNOUNCED:,} announcements, {RUBBISH} of rubbish, {when}: all there after", unit="s")
    yield row.sample(time.perf_counter() - began)
    time.sleep(SETTLE_SECS)


def _samples(waits: list[tuple[float, float]], when: str) -> Iterator[Sample]:
    waited, worked = ([each[at] for each in waits] for at in (0, 1))
    name = f"{when}: a reader of /health beside waits"
    yield Row(label=f"{name}, p99", unit="ms").sample(percentile(waited, 99))
    yield Row(label=f"{name}, longest", unit="ms").sample(max(waited))
    yield Row(label=f"{name} for the hub's own work, p99", unit="ms", at_most=MAX_WAIT_MS).sample(
        percentile(worked, 99)
    )
    yield Row(label=f"{name} for the hub's own work, longest", unit="ms", at_most=MAX_WAIT_MS).sample(max(worked))
