"""MQTT: how soon 2,000 announced devices are there, a steady stream of states, and a flood; needs mosquitto."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from appliance.cli.main import bound_collections
from appliance.home.events import DeviceStateChanged
from benchmarks._frame import Row, Sample, Skipped
from benchmarks._lag import watched_here
from benchmarks._turns import LongestTurn
from firmware import skips
from tests.adapters.mqtt.broker import PASSWORD, USER, Mosquitto, running
from tests.adapters.mqtt.homes import BrokerHome, until

DEVICES = 2_000
STEADY, STEADY_SECS = 1_000, 60
FLOOD, FLOOD_SECS = 10_000, 10

ANNOUNCED = Row(label=f"{DEVICES:,} announced devices are there after", unit="s")
MEMORY = Row(label="memory that they take", unit="MB")

SENDER = """
import sys, time, json
import paho.mqtt.client as mqtt
port, user, password, mode, rate, seconds, devices = sys.argv[1:]
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="sender")
client.username_pw_set(user, password)
client.max_inflight_messages_set(1000)
client.connect("127.0.0.1", int(port))
client.loop_start()
if mode == "announce":
    for n in range(int(devices)):
        config = {"state_topic": f"bench/{n}", "unique_id": f"b{n}", "device_class": "temperature", "name": None,
                  "unit_of_measurement": "°C", "value_template": "{{ value_json.temperature }}",
                  "availability_topic": "bench/status",
                  "device": {"identifiers": [f"bench{n}"], "name": f"Sensor {n}"}}
        last = client.publish(f"homeassistant/sensor/b{n}/t/config", json.dumps(config), qos=1, retain=True)
    client.publish("bench/status", "online", qos=1, retain=True)
    last.wait_for_publish()
else:
    began, sent, total = time.monotonic(), 0, int(rate) * int(seconds)
    while sent < total:
        due = min(int((time.monotonic() - began) * int(rate)), total)
        for number in range(sent, due):
            client.publish(f"bench/{number % int(devices)}", json.dumps({"temperature": number}))
        sent = max(sent, due)
        time.sleep(0.005)
    client.publish("bench/status", "offline", qos=1).wait_for_publish()
client.loop_stop()
"""


def measure(_rounds: int) -> Iterator[Sample]:
    """What one broker's devices cost, once."""
    if skips.find_program("mosquitto") is None:
        raise Skipped("mosquitto is not installed")
    yield from asyncio.run(_measure())


async def _measure() -> list[Sample]:
    figures: list[Sample] = []
    gc.freeze()
    bound_collections()  # as `lares run` has them
    with tempfile.TemporaryDirectory() as folder:
        async with running(Mosquitto(Path(folder), lines="max_queued_messages 0\n")) as broker:
            await _send(broker.port, "announce", 0, 0)
            before = _rss_kib()
            async with BrokerHome(broker) as home:
                began = time.perf_counter()
                await until(lambda: len(home.registry.list_devices()) == DEVICES)
                figures.append(ANNOUNCED.sample(time.perf_counter() - began))
                await asyncio.sleep(3)
                figures.append(MEMORY.sample((_rss_kib() - before) * 1024 / 1e6))
                figures += await _stream(home, broker.port, STEADY, STEADY_SECS)
                figures += await _stream(home, broker.port, FLOOD, FLOOD_SECS)
    return figures


async def _stream(home: BrokerHome, port: int, rate: int, seconds: int) -> list[Sample]:
    """Figures of so many states a second: loop lag, what was not taken in, what it took."""
    home.events.clear()
    taken, idle, dropped = 0, _rss_kib(), home.adapter.inbox.dropped
    cpu, peak, longest = time.process_time(), idle, 0
    sender = asyncio.ensure_future(_send(port, "states", rate, seconds))
    turns = LongestTurn()
    with turns.watched():
        async with watched_here() as lags:
            while not sender.done():
                await asyncio.sleep(0.01)
                longest = max(longest, len(home.adapter.inbox))
                peak = max(peak, _rss_kib())
                taken += _changes_in(home)
    await until(lambda: not len(home.adapter.inbox))
    await asyncio.sleep(1)
    taken += _changes_in(home)
    name = f"{rate:,} states a second"
    rows = (
        (Row(label=f"{name}: changes told", unit="% of them"), 100 * taken / (rate * seconds)),
        (Row(label=f"{name}: dropped for newer ones"), home.adapter.inbox.dropped - dropped),
        (Row(label=f"{name}: longest queue", unit="messages"), longest),
        (Row(label=f"{name}: memory beyond idle", unit="MB"), (peak - idle) * 1024 / 1e6),
        (Row(label=f"{name}: processor", unit="% of a core"), (time.process_time() - cpu) / seconds * 100),
    )
    return [*lags.samples(name), turns.sample(name), *(row.sample(value) for row, value in rows)]


def _changes_in(home: BrokerHome) -> int:
    """The changes of states told since this was last asked; they are forgotten: a hub keeps none, either."""
    count = sum(isinstance(each, DeviceStateChanged) for each in home.events)
    home.events.clear()
    return count


async def _send(port: int, mode: str, rate: int, seconds: int) -> None:
    """Run the sender in a process of its own, to its end."""
    given = [str(each) for each in (port, USER, PASSWORD, mode, rate, seconds, DEVICES)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    sender = await asyncio.create_subprocess_exec(sys.executable, "-c", SENDER, *given, env=environment,
                                                  stdout=subprocess.DEVNULL)  # fmt: skip
    if await sender.wait():
        raise RuntimeError(json.dumps({"sender": sender.returncode}))


def _rss_kib() -> int:
    """Memory of this process in KiB."""
    text = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS")))
