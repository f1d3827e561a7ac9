"""The costs of a home during one hour, with 100 devices over MQTT, five polled lamps, 20 automations, history, and
two open pages.

Node-RED reads the same reports and sends them to a reader, but stores nothing.

The hub writes history four times per day. If the measurement contains one of these writes, its figure per day is too
high, because the figure contains this write 24 times.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from benchmarks._client import Readers, ask, wait_until_ready
from benchmarks._frame import Row, Sample
from benchmarks._node_red import node_red, read_states, send_to_readers
from benchmarks._processes import Running, hub, lamps, peer
from tests.adapters.mqtt.broker import PASSWORD, USER, Broker, OwnBroker
from tests.adapters.mqtt.broker import running as running_broker

MINUTES = int(os.environ.get("HOME_MINUTES", "60"))
DEVICES, LAMPS, AUTOMATIONS, PAGES = 100, 5, 20, 2
POLL_SECS, SETTLE_SECS = 10, 330.0  # the first flush, after 300 s, writes each new device
REPORT_SECS = 60
"""Seconds between two reports of a sensor. A report contains temperature, humidity, and battery."""

DAY_MINUTES = 24 * 60

HOME = f"a home for {MINUTES} minutes ({DEVICES} devices over MQTT, {LAMPS} polled lamps, {AUTOMATIONS} automations)"
MEMORY = Row(label=f"{HOME}: memory of hub and worker (PSS)", unit="MB", at_most=60, is_felt=True)
CPU = Row(label=f"{HOME}: processor", unit="% of a core", at_most=0.5, is_felt=True)
CARD = Row(label=f"{HOME}: written to the card", unit="MB per day", at_most=1, is_felt=True)

AUTOMATION = """return {{ id = "a{0}", name = "A{0}",
  trigger = {{ type = "device_state_change", device_id = "mqtt:b{0}", attribute = "temperature", above = 25 }},
  conditions = {{ {{ type = "sun_position", after = "sunset" }} }},
  execute = function(ctx) ctx:log("info", ctx:get_device("mqtt:b{0}").name) end }}"""
CONFIG = f"""
[automations]
enabled = true
[locale]
latitude = 52.5
longitude = 13.4
[adapters.mqtt]
host = "127.0.0.1"
port = PORT
username = "{USER}"
password = "{PASSWORD}"
"""
PAGE = ("/devices?include=commands", "/rooms", "/groups", "/scenes", "/automations", "/capabilities", "/diagnostics")
"""The requests that the dashboard sends when a user opens it."""


class Home(Protocol):
    """The running hub and its worker. `benchmarks._processes.Running` describes the figures."""

    @property
    def port(self) -> int: ...
    def pss_mb(self) -> float: ...
    def cpu_secs(self) -> float: ...
    def written_mb(self) -> float: ...


def automations() -> dict[str, str]:
    """Return the name and the content of each automation's file."""
    return {f"a{number}.lua": AUTOMATION.format(number) for number in range(AUTOMATIONS)}


def config(broker: Broker, lamp_ports: Sequence[int]) -> str:
    return CONFIG.replace("PORT", str(broker.port)) + lamps(lamp_ports, POLL_SECS)


def measure(_rounds: int) -> Iterator[Sample]:
    with peer("lamps", str(LAMPS), "1") as ports, tempfile.TemporaryDirectory(prefix="lares-benchmark-") as name:
        folder = Path(name)
        (folder / "config" / "automations").mkdir(parents=True)
        for file, text in automations().items():
            (folder / "config" / "automations" / file).write_text(text)
        yield from asyncio.run(_measure(folder, ports))


async def _measure(folder: Path, lamp_ports: Sequence[int]) -> list[Sample]:
    async with running_broker(OwnBroker(folder)) as broker:
        flow = [*read_states(broker.port, "sensors/+", ["events"]), *send_to_readers()]
        with (
            hub(config(broker, lamp_ports), folder=folder) as home,
            node_red(flow, {"broker": {"user": USER, "password": PASSWORD}}) as other,
        ):
            return await live(home, broker, other)


def values_at(minute: int) -> dict[str, int]:
    return {"temperature": 20 + minute % 10, "humidity": 50 + minute % 7, "battery": 90 - minute % 2}


async def live(home: Home, broker: Broker, other: Running | None = None) -> list[Sample]:
    """Announce the sensors, open the pages, and make the sensors report, evenly distributed over each minute."""
    await asyncio.to_thread(wait_until_ready, home.port)
    async with broker.client("sensors") as client, Readers(home.port, PAGES):
        for number in range(DEVICES):
            for kind, unit in (("temperature", "°C"), ("humidity", "%"), ("battery", "%")):
                announced = {
                    "state_topic": f"sensors/{number}",
                    "unique_id": f"b{number}{kind}",
                    "device_class": kind,
                    "unit_of_measurement": unit,
                    "value_template": f"{{{{ value_json.{kind} }}}}",
                    "device": {"identifiers": [f"b{number}"], "name": f"Sensor {number}"},
                }
                topic = f"homeassistant/sensor/b{number}/{kind}/config"
                await client.publish(topic, json.dumps(announced), qos=1, retain=True)
        await asyncio.to_thread(ask, home.port, "POST", "/auth/keys", b'{"label":"page","role":"write"}')
        for path in PAGE * PAGES:
            await asyncio.to_thread(ask, home.port, "GET", path)
        for number in range(DEVICES):  # retained, so that all first values are written before the measurement
            await client.publish(f"sensors/{number}", json.dumps(values_at(0)), retain=True)
        await asyncio.sleep(SETTLE_SECS)
        sides: list[Home] = [home, other] if other else [home]
        cpu, written = [each.cpu_secs() for each in sides], home.written_mb()
        for minute in range(MINUTES):
            for number in range(DEVICES):
                await client.publish(f"sensors/{number}", json.dumps(values_at(minute)))
                await asyncio.sleep(REPORT_SECS / DEVICES)
        cost = [100 * (each.cpu_secs() - before) / (MINUTES * 60) for each, before in zip(sides, cpu, strict=True)]
        return [
            MEMORY.sample(home.pss_mb(), None, other.pss_mb() if other else None),
            CPU.sample(cost[0], None, cost[1] if other else None),
            CARD.sample((home.written_mb() - written) * DAY_MINUTES / MINUTES),
        ]
