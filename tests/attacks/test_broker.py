"""A running hub receives hostile announcements and messages. The hub still answers requests, uses little memory,
and can be restarted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mqtt.broker import PASSWORD, USER, Broker
from tests.attacks.test_scripts import Home
from tests.fakes.process import configure, running

MAX_GROWTH_BYTES = 150 << 20
MAX_LATE_SECS = 40
SHARED = "{% set ns=namespace(x=(1,)) %}{% for i in range(60) %}{% set ns.x=(ns.x,ns.x) %}{% endfor %}"
ENDINGS = (
    "ns.x in value_json", "{ns.x: 1}", "value_json.get(ns.x)",
    "value_json[ns.x]", "[ns.x, ns.x]|max",
    "ns.x|map('x')|list",
    "value|regex_findall(ns.x)", "ns.x", "ns.x == ns.x", "[ns.x]|sort",
    "ns.x|to_json", "ns.x|unique|list", "ns.x|string",
)  # fmt: skip
GROWING = (
    ("[1]", "ns.x + ns.x"), ("'a'", "ns.x ~ ns.x"), ("{'a': 1}", "{'a': ns.x, 'b': ns.x}"), ("9", "ns.x * ns.x"),
)  # fmt: skip
HEAVY = "{% for i in range(300) %}{{ (value ~ i)[:20] | upper | replace('a', 'b') }}{% endfor %}"
TITLES = "{% for i in range(490) %}{% if value.title() %}{% endif %}{% endfor %}1"
LONG = "{{ " + " + ".join(f"value_json.a{number}|int(0)" for number in range(95)) + " }}"

Announcement = tuple[str, dict[str, Any]]


def sensors(*templates: str, topic: str = "attack", device: str = "") -> Iterator[Announcement]:
    """Yield a sensor for each template, on one device or on separate devices."""
    for number, template in enumerate(templates):
        facts = {"identifiers": [device or f"one{number}"]}
        config = {"unique_id": f"s{number}", "state_topic": topic, "value_template": template, "device": facts}
        yield f"sensor/s{number}", config


def components(count: int, *, device: str = "many", base_topic: str = "b", **fields: Any) -> Announcement:
    parts = {
        f"c{at}": {"platform": "sensor", "unique_id": f"{device}{at}", "state_topic": "a"} for at in range(count)
    }
    return f"device/{device}", {"device": {"identifiers": [device]}, "components": parts, "~": base_topic, **fields}


def chained() -> Iterator[Announcement]:
    """Yield 8,000 announcements. Each device shares an identifier with the next device."""
    for number in range(421):
        facts = {"identifiers": [f"chain{number * 19 + each}" for each in range(20)]}
        yield f"sensor/k{number}", {"unique_id": f"k{number}", "state_topic": "attack", "device": facts}


ATTACKS: dict[str, Callable[[], Iterator[Announcement]]] = {
    "shared parts": lambda: sensors(*(f"{SHARED}{{{{ {each} }}}}" for each in ENDINGS)),
    "values that double": lambda: sensors(*(
        f"{{% set ns=namespace(x={first}) %}}{{% for i in range(60) %}}{{% set ns.x={step} %}}{{% endfor %}}"
        "{{ ns.x }}" for first, step in GROWING
    )),
    "heavy entities of one device": lambda: sensors(*[HEAVY] * 150, device="one"),
    "heavy entities of many devices": lambda: sensors(*[HEAVY] * 60),
    "work on long texts": lambda: sensors(*[TITLES] * 20),
    "templates that are long to parse": lambda: sensors(*(LONG.replace("a0", f"b{number}") for number in range(300))),
    "templates with faults": lambda: sensors("{{ value", "{{ x|nope }}", "{% macro a() %}{% endmacro %}", "x" * 9_000,
                                             "{{ " + "(" * 200 + "1" + ")" * 200 + " }}"),
    "chained identifiers": chained,
    "availability that all inherit": lambda: iter([components(
        250, availability=[{"topic": "a", **{str(at * 100 + key): 1 for key in range(70)}} for at in range(50)])]),
    "a long base topic": lambda: iter([components(
        250, base_topic="b" * 20_000, availability=[{"topic": "~"}] * 50)]),
    "wildcards": lambda: (
        (f"sensor/w{at}", {"state_topic": "/".join(["+"] * (at % 200 + 1)) + f"/{at}/#"}) for at in range(1_000)
    ),
    "thousands of devices": lambda: (components(5, device=f"m{number}") for number in range(1_500)),
}  # fmt: skip
"""Maps the aim of an attack to its hostile announcements."""


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_hub_answers_under_attack_from_its_broker(broker: Broker, tmp_path: Path, attack: str) -> None:
    configure(tmp_path, f'[adapters.mqtt]\nhost = "127.0.0.1"\nport = {broker.port}\nusername = "{USER}"\n'
                        f'password = "{PASSWORD}"\n')  # fmt: skip
    innocent = "/devices/mqtt:innocent"
    wrong: list[str] = []

    async def shows(home: Home, value: str) -> None:
        expected, began = {"value": int(value), "unit": "°C"}, home.clock()
        while (await home.hub.ask("GET", innocent))[1].get("attributes", {}).get("temperature") != expected:
            assert home.clock() - began < MAX_LATE_SECS, value
            await client.publish("innocent", value)
            await asyncio.sleep(0.1)

    async with broker.client() as client:
        config = {"state_topic": "innocent", "unique_id": "innocent", "device_class": "temperature",
                  "unit_of_measurement": "°C", "device": {"identifiers": ["innocent"]}}  # fmt: skip
        await client.publish("homeassistant/sensor/innocent/config", json.dumps(config), retain=True)
        async with running(tmp_path) as hub:
            await hub.ready()
            home = Home(hub, tmp_path)
            await shows(home, "1")
            before = home.memory_bytes()
            async with home.watched(wrong, attack):
                for topic, fields in ATTACKS[attack]():
                    await client.publish(f"homeassistant/{topic}/config", json.dumps(fields), retain=True)
                for payload in ('{"a": 1}', "aB c" * 15_000, *["abc" * 100] * 40):
                    await client.publish("attack", payload)
                await shows(home, "2")
            if (grown := home.memory_bytes() - before) > MAX_GROWTH_BYTES:
                wrong.append(f"{grown >> 20} MB kept")
            print(f"{attack}: slowest /health {home.slowest:.3f} s, grown {grown / 1e6:.0f} MB", flush=True)
        async with running(tmp_path) as hub:
            await hub.ready()
            await shows(Home(hub, tmp_path), "3")
            assert "Traceback" not in hub.log.read_text()
    assert wrong == [], "\n".join(wrong)
