"""MQTT: the time until 2,000 announced devices appear, a steady stream of states, and a flood. Needs mosquitto.

A minimal program (the floor) reads the same states with bare aiomqtt, and forwards nothing. Node-RED forwards the
states to a reader.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks._client import Readers, ask
from benchmarks._frame import Row, Sample, Skipped
from benchmarks._node_red import node_red, read_states, send_to_readers
from benchmarks._processes import Running, hub, peer
from firmware import skips
from tests.adapters.mqtt.broker import PASSWORD, USER, Mosquitto, running

DEVICES, RUBBISH = 2_000, 300
STREAMS = ((1_000, 30), (10_000, 10))
"""States per second, and the number of seconds."""

MAX_CORE = {1_000: 30}
"""Limits of processor use, by states per second, for figures that users notice."""

TOPIC = "bench/+"

PATIENCE_SECS, SETTLE_SECS = 60.0, 3.0

SENDER = """
import sys, time, json
import paho.mqtt.client as mqtt
port, user, password, rate, seconds, devices, rubbish = sys.argv[1:]
rate, seconds, devices, rubbish = map(int, (rate, seconds, devices, rubbish))
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="sender")
client.username_pw_set(user, password)
client.max_inflight_messages_set(1000)
client.connect("127.0.0.1", int(port))
client.loop_start()
bad = ("{rubbish", "[]", "{}", json.dumps({"state_topic": 5, "unique_id": []}), "x" * 70_000,
       json.dumps({"state_topic": "s", "value_template": "{{ " + "(" * 200}),
       json.dumps({"state_topic": "s", "value_template": "{% for x in y %}"}), json.dumps({"device": "x" * 60_000}),
       json.dumps({"state_topic": "s", "availability": [{"topic": "#/x"}] * 50}), "[" * 30_000)
if rate == 0:
    for n in range(devices):
        config = {"state_topic": f"bench/{n}", "unique_id": f"b{n}", "device_class": "temperature", "name": None,
                  "unit_of_measurement": "°C", "value_template": "{{ value_json.temperature }}",
                  "availability_topic": "bench/status",
                  "device": {"identifiers": [f"bench{n}"], "name": f"Sensor {n}"}}
        if n * rubbish // devices != (n + 1) * rubbish // devices:
            client.publish(f"homeassistant/sensor/r{n}/t/config", bad[n % len(bad)], qos=1, retain=True)
        client.publish(f"homeassistant/sensor/b{n}/t/config", json.dumps(config), qos=1, retain=True)
    client.publish("bench/status", "online", qos=1, retain=True).wait_for_publish()
else:
    began, sent, total = time.monotonic(), 0, rate * seconds
    while sent < total:
        due = min(int((time.monotonic() - began) * rate), total)
        for number in range(sent, due):
            client.publish(f"bench/{number % devices}", json.dumps({"temperature": number % 997}))
        sent = max(sent, due)
        time.sleep(0.005)
    client.publish("bench/sent", "all", qos=1).wait_for_publish()
client.loop_stop()
"""


def measure(_rounds: int) -> Iterator[Sample]:
    if skips.find_program("mosquitto") is None:
        raise Skipped("mosquitto is not installed")
    yield from asyncio.run(_measure())


async def _measure() -> list[Sample]:
    with tempfile.TemporaryDirectory() as folder:
        async with running(Mosquitto(Path(folder), lines="max_queued_messages 0\n")) as broker:
            return await asyncio.to_thread(lambda: [*_samples(broker.port)])


def _samples(broker: int) -> Iterator[Sample]:
    """Measure one hub. Measure the iterations of the event loop in a second hub, because that measurement slows
    the hub down."""
    section = f'[adapters.mqtt]\nhost = "127.0.0.1"\nport = {broker}\nusername = "{USER}"\npassword = "{PASSWORD}"\n'
    name = f"{DEVICES:,} devices and {RUBBISH} invalid announcements"
    with hub(section) as home:
        time.sleep(SETTLE_SECS)
        before, began = home.pss_mb(), time.perf_counter()
        _send(broker)
        _wait_for_devices(home)
        yield Row(label=f"{name}: all present after", unit="s").sample(time.perf_counter() - began)
        time.sleep(SETTLE_SECS)
        yield Row(label=f"{name}: memory", unit="MB").sample(home.pss_mb() - before)
        for rate, seconds in STREAMS:
            with _others(broker) if rate in MAX_CORE else contextlib.nullcontext(list[Running]()) as others:
                yield from _stream(home, others, broker, rate, seconds)
    with hub(section, is_watched=True) as home:
        home.forget_turns()
        _wait_for_devices(home)
        yield home.longest_turn(name)
        time.sleep(SETTLE_SECS)
        for rate, seconds in STREAMS:
            home.forget_turns()
            asyncio.run(_count_frames(home.port, broker, rate, seconds))
            yield home.longest_turn(f"{rate:,} states per second")


def _wait_for_devices(home: Running) -> None:
    began = time.perf_counter()
    while (count := len(_devices(home))) < DEVICES:
        if time.perf_counter() - began > PATIENCE_SECS:
            raise RuntimeError(f"there were {count} devices after {PATIENCE_SECS:g} s")


def _devices(home: Running) -> list[object]:
    time.sleep(0.1)
    devices: list[object] = json.loads(ask(home.port, "GET", "/devices"))
    return devices


@contextlib.contextmanager
def _others(broker: int) -> Iterator[list[Running]]:
    """Run bare aiomqtt, and Node-RED if it is installed. If the broker is flooded, run neither, because the hub needs
    the processor."""
    flow = [*read_states(broker, TOPIC, ["events"]), *send_to_readers()]
    credentials = {"broker": {"user": USER, "password": PASSWORD}}
    with (
        peer("states", str(broker), USER, PASSWORD, TOPIC) as [bare],
        node_red(flow, credentials) as other,
    ):
        yield [Running(pid=bare), *([other] if other else [])]


def _stream(home: Running, others: Sequence[Running], broker: int, rate: int, seconds: int) -> Iterator[Sample]:
    """Yield the cost of states, and the proportion of the states that a reader of the event stream received."""
    name, before = f"{rate:,} states per second", home.pss_mb()
    sides = [home, *others]
    cpu = [each.cpu_secs() for each in sides]
    received = asyncio.run(_count_frames(home.port, broker, rate, seconds))
    yield Row(label=f"{name}: received by a reader", unit="%").sample(100 * received / (rate * seconds))
    costs = [100 * (each.cpu_secs() - before) / seconds for each, before in zip(sides, cpu, strict=True)]
    yield Row(
        label=f"{name}: processor",
        unit="% of a core",
        floor="bare aiomqtt",
        at_most=MAX_CORE.get(rate),
        is_absolute=True,
        is_felt=rate in MAX_CORE,
    ).sample(*costs)
    yield Row(label=f"{name}: memory gained", unit="MB").sample(home.pss_mb() - before)


async def _count_frames(port: int, broker: int, rate: int, seconds: int) -> int:
    async with Readers(port, 1) as reader:
        await asyncio.to_thread(_send, broker, rate, seconds)
        await asyncio.sleep(SETTLE_SECS)
        return reader.frames


def _send(broker: int, rate: int = 0, seconds: int = 0) -> None:
    """In a separate process, announce all devices, or send this many states per second. Wait for the end of the
    process."""
    given = [str(each) for each in (broker, USER, PASSWORD, rate, seconds, DEVICES, RUBBISH)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", SENDER, *given], env=environment, check=True, stdout=subprocess.DEVNULL)
