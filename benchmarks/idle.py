"""Minutes without requests: 100 polled lamps, no device at all, and the memory of an ordinary home with one page."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks._client import Readers, ask, wait_until_ready
from benchmarks._frame import Row, Sample
from benchmarks._processes import Running, hub, lamps, peer
from tests.adapters.mqtt.broker import PASSWORD, USER, Broker, OwnBroker
from tests.adapters.mqtt.broker import running as running_broker

LAMPS, POLL_SECS = 100, 5
WINDOWS, SECONDS, SETTLE_SECS = 5, 30, 10
"""What wakes up so seldom takes half as much again in one half minute as in the next: five are measured."""

POLLED = f"{LAMPS} lamps polled every {POLL_SECS} s"
CPU = Row(label=f"{POLLED}: processor", unit="% of a core", beside="bare aiohttp", at_most=1.15)
"""0.45 % of a core where bare aiohttp takes 0.39."""
KEPT = Row(label=f"{POLLED} by bare aiohttp over kept connections: processor", unit="% of a core")
MEMORY = Row(label=f"{LAMPS} lamps: memory of the hub and its Lua worker (PSS)", unit="MB", at_most=60)
WAKEUPS = Row(label="no device: wake-ups of all threads of hub and worker", unit="a second", at_most=0.5)
EMPTY = Row(label="no device: memory of the hub and its Lua worker (PSS)", unit="MB", at_most=45)

DEVICES, AUTOMATIONS, HOME_SECS = 100, 20, 120
ORDINARY = Row(
    label=f"{DEVICES} devices over MQTT, {AUTOMATIONS} automations, one page: memory of hub and worker (PSS)",
    unit="MB",
    at_most=60,
)
AUTOMATION = """return {{ id = "a{0}", name = "A{0}",
  trigger = {{ type = "device_state_change", device_id = "mqtt:b{0}", attribute = "temperature", above = 25 }},
  conditions = {{ {{ type = "sun_position", after = "sunset" }} }},
  execute = function(ctx) ctx:log("info", ctx:get_device("mqtt:b{0}").name) end }}"""
PAGE = ("/devices?include=commands", "/rooms", "/groups", "/scenes", "/automations", "/capabilities", "/diagnostics")


def measure(_rounds: int) -> Iterator[Sample]:
    """Measure everything at once, in a fixed number of windows, because idle hubs do not disturb each other."""
    with (
        peer("lamps", str(LAMPS), "1") as ports,
        peer("polls", str(POLL_SECS), "1", *map(str, ports)) as [bare],
        peer("polls", str(POLL_SECS), "60", *map(str, ports)) as [kept],
        hub(lamps(ports, POLL_SECS)) as home,
        hub() as empty,
    ):
        wait_until_ready(home.port)
        time.sleep(SETTLE_SECS)
        polling = (home, Running(pid=bare), Running(pid=kept))
        for _ in range(WINDOWS):
            wakeups, before = empty.wakeups(), [each.cpu_secs() for each in polling]
            time.sleep(SECONDS)
            ours, bare_one, kept_one = (
                100 * (each.cpu_secs() - at_first) / SECONDS for each, at_first in zip(polling, before, strict=True)
            )
            yield CPU.sample(ours, bare_one)
            yield KEPT.sample(kept_one)
            yield WAKEUPS.sample((empty.wakeups() - wakeups) / SECONDS)
        yield MEMORY.sample(home.pss_mb())
        yield EMPTY.sample(empty.pss_mb())
    yield ORDINARY.sample(asyncio.run(_measure_home()))


async def _measure_home() -> float:
    """Return the memory of a home with keys, sensors that report, automations, and a page, after two minutes."""
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as name:
        folder = Path(name)
        (folder / "config" / "automations").mkdir(parents=True)
        for number in range(AUTOMATIONS):
            (folder / f"config/automations/a{number}.lua").write_text(AUTOMATION.format(number))
        async with running_broker(OwnBroker(folder)) as broker:
            section = f'[adapters.mqtt]\nhost = "127.0.0.1"\nport = {broker.port}\nusername = "{USER}"\n'
            more = "[automations]\nenabled = true\n[locale]\nlatitude = 52.5\nlongitude = 13.4\n"
            with hub(f'{section}password = "{PASSWORD}"\n{more}', folder=folder) as home:
                return await _use(home, broker)


async def _use(home: Running, broker: Broker) -> float:
    async with broker.client("sensors") as client, Readers(home.port, 1):
        for number in range(DEVICES):
            for kind, unit in (("temperature", "°C"), ("humidity", "%"), ("battery", "%")):
                config = {
                    "state_topic": f"sensors/{number}",
                    "unique_id": f"b{number}{kind}",
                    "device_class": kind,
                    "unit_of_measurement": unit,
                    "value_template": f"{{{{ value_json.{kind} }}}}",
                    "device": {"identifiers": [f"b{number}"], "name": f"Sensor {number}"},
                }
                topic = f"homeassistant/sensor/b{number}/{kind}/config"
                await client.publish(topic, json.dumps(config), qos=1, retain=True)
        await asyncio.to_thread(ask, home.port, "POST", "/auth/keys", b'{"label":"page","role":"write"}')
        for path in PAGE:
            await asyncio.to_thread(ask, home.port, "GET", path)
        for second in range(HOME_SECS):
            values = {"temperature": 20 + second % 10, "humidity": 50 + second % 7, "battery": 90}
            for number in range(DEVICES):
                await client.publish(f"sensors/{number}", json.dumps(values))
            await asyncio.sleep(1)
        return home.pss_mb()
