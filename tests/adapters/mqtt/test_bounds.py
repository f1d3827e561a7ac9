"""The cost of announcements and messages: memory is limited, faults are reported, and expensive work waits."""

from __future__ import annotations

import gc
import json
import tracemalloc
import weakref
from typing import Any

import pytest

from appliance.adapters.device_http import DeviceSession
from appliance.adapters.mqtt import live_devices as live_devices_file
from appliance.adapters.mqtt import messages, router
from appliance.adapters.mqtt.announcements import announced
from appliance.adapters.mqtt.duplicates import MAX_PRESSES
from appliance.adapters.mqtt.inbox import ENTRY_BYTES
from appliance.adapters.mqtt.messages import parse_json
from appliance.adapters.mqtt.refusals import MAX_REPORTED, MORE_FAULTS, Refusal, Reports
from appliance.adapters.mqtt.templates import template
from appliance.errors import Invalid
from appliance.log_limit import MAX_SAME_KIND
from tests.adapters.mqtt import table
from tests.adapters.mqtt.captures import Sent
from tests.adapters.mqtt.table import live_devices, new_catalog, rebuild, receive, take
from tests.fakes.clock import VirtualClock
from tests.fakes.rows import each_row


def config(component: str, object_id: str = "e", **fields: Any) -> Sent:
    keys = {"unique_id": object_id, "state_topic": "s", "command_topic": "c", "device": {"identifiers": ["x"]}}
    return table.config(f"{component}/{object_id}", **{**keys, **fields})


@each_row(
    ("component", "fields", "at"),
    [
        ("sensor", {}, "value_template"),
        ("sensor", {}, "availability_template"),
        ("sensor", {"availability": [{"topic": "a", "value_template": "{{ x|nope }}"}]}, "value_template"),
        ("switch", {}, "command_template"),
        ("lock", {}, "command_template"),
        ("siren", {}, "command_off_template"),
        ("number", {}, "command_template"),
        ("light", {"brightness_command_topic": "b"}, "brightness_command_template"),
        ("light", {"schema": "template", "command_off_template": "off"}, "command_on_template"),
        ("climate", {"mode_command_topic": "m", "mode_state_topic": "n"}, "mode_command_template"),
    ],
)
def test_a_faulty_template_is_reported_at_its_announcement(component: str, fields: Any, at: str) -> None:
    topics = {"availability_topic": "a"} if at == "availability_template" else {}
    own = {} if "availability" in fields else {at: "{{ x|nope }}"}
    catalog = new_catalog()
    take(catalog, (config(component, **topics, **fields, **own),))
    rebuild(catalog)
    reasons = [each.reason for each in catalog.refused.values()]
    assert len(reasons) == 1 and reasons[0].endswith(f"{at} uses the unknown filter 'nope'"), reasons


@each_row("tilde", ["~", "\\u007e"])
def test_a_base_topic_fills_no_memory(tilde: str) -> None:
    topics = ",".join(f'"{number}topic": "{tilde}"' for number in range(1_000))
    payload = f'{{"~": "{"b" * 20_000}", {topics}}}'.encode()
    topic = "homeassistant/sensor/x/config"
    with pytest.raises(Invalid, match="base topic '~' is so long"):
        announced("homeassistant", topic, payload)


def test_inherited_values_of_components_are_stored_once() -> None:
    topic = "homeassistant/device/x/config"
    parts = {f"c{number}": {"platform": "sensor", "state_topic": f"~/{number}"} for number in range(3)}
    payload = {"~": "base", "availability": [{"topic": "~/a"}], "components": parts}
    found = announced("homeassistant", topic, json.dumps(payload).encode())
    assert found is not None and len({id(each.config["availability"]) for each in found}) == 1
    assert [each.config["state_topic"] for each in found] == ["base/0", "base/1", "base/2"]
    assert found[0].config["availability"] == [{"topic": "base/a"}]


def test_configurations_are_bounded_in_bytes_and_present_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "MAX_CONFIGS_BYTES", 20_000)
    catalog = new_catalog()
    take(catalog, (config("sensor", "a", name="x" * 800), config("sensor", "b", name="x" * 800)))
    assert not catalog.take_config("homeassistant/sensor/c/config", config("sensor", "c", name="x" * 800).payload)
    assert "0 MiB of memory are announced" in catalog.limits["configurations"]
    take(catalog, (Sent("homeassistant/sensor/a/config", b"", retain=True),))
    assert not catalog.limits
    assert catalog.take_config("homeassistant/sensor/c/config", config("sensor", "c", name="x" * 800).payload)


MANY: dict[str, Any] = {"rl": [1] * 32, "btn": [1] * 32, "swc": [1] * 32, "so": {"73": 1, "114": 1}}
TASMOTA = {"t": "<n>", "ft": "%prefix%/%topic%/", "tp": [1, 2, 3], **MANY}


def parts_of(component: str, **fields: Any) -> str:
    """Return a configuration in the device form with the maximum number of components."""
    return json.dumps({**fields, "cmps": {number: {"p": component, "t": "c", "cmd_t": "c"} for number in range(256)}})


@each_row(
    ("topic", "payload"),
    [
        ("homeassistant/sensor/<n>/config", '{"state_topic":"t"}'),
        ("homeassistant/sensor/<n>/config", '{"state_topic":"t","value_template":"{{[<n>' + ",a" * 400 + ']}}"}'),
        ("homeassistant/sensor/<n>/config", '{"state_topic":"t","x":[' + "{}," * 5_000 + "0]}"),
        ("homeassistant/sensor/<n>/config", '{"state_topic":"t","x":[' + "[[]]," * 5_000 + "0]}"),
        ("homeassistant/sensor/<n>/config", '{"state_topic":"t","avty":[' + '{"t":"a"},' * 49 + '{"t":"b"}]}'),
        ("homeassistant/device/<n>/config", parts_of("switch")),
        ("homeassistant/device/<n>/config", parts_of("light")),
        ("homeassistant/device/<n>/config", parts_of("tag", avty=[{"t": "a"}] * 50)),
        ("tasmota/discovery/0000000000<n>/config", json.dumps(TASMOTA)),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_announcements_take_at_most_the_counted_memory(topic: str, payload: str) -> None:
    template.PARSED = template.ParsedTemplates()
    catalog = new_catalog()
    take(catalog, (config("sensor", value_template="{{ value }}"),))
    tracemalloc.start()
    try:
        for number in range(10, 18):
            catalog.take_config(topic.replace("<n>", f"{number}"), payload.replace("<n>", f"{number}").encode())
        rebuild(catalog)
        template.PARSED = template.ParsedTemplates()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < catalog._bytes
        assert len(catalog.devices) > 8 and not catalog.refused
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("count", "size", "parsed"), [(10_000, 40, 10_000), (100, 8_000, 200)])
def test_a_template_is_parsed_once_unless_there_are_too_many_characters_of_them(
    count: int, size: int, parsed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = list[str]()

    def parse(text: str) -> str:
        texts.append(text)
        return text

    monkeypatch.setattr(template, "_parse", parse)
    kept = template.ParsedTemplates()
    for number in range(2 * count):
        kept.find(f"{number % count:{size}}")
    assert len(texts) == parsed and len(kept._kept) * size <= template.MAX_PARSED_CHARS


def test_faults_beyond_the_limit_are_summarised_in_one_line(clock: VirtualClock) -> None:
    live, sentence = live_devices(clock), list[Any]()
    live._publish._bus.listen(sentence.append)
    reports = Reports(live._publish, clock)
    for count in (MAX_REPORTED, 2_000, 2_000):
        reports.report({f"{number}": Refusal("x", "y", "is not JSON") for number in range(count)}, {})
        assert [each.reason for each in sentence[MAX_REPORTED:]] == ([MORE_FAULTS] if count > MAX_REPORTED else [])
    assert MAX_REPORTED < MAX_SAME_KIND, "the log takes all of them within a minute"


async def test_endless_topics_below_a_wildcard_fill_no_memory(
    session: DeviceSession, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_devices_file, "MAX_REMEMBERED_BYTES", 20 * ENTRY_BYTES)
    live = live_devices(clock)
    for number in range(2_000):
        receive(live, f"a/{number}", b"")
        receive(live, f"a/{number}", b"\xff")
    assert len(live._remembered) < 20 and len(live.router.refused) <= 1_000
    for number in range(MAX_PRESSES + 10):
        receive(live, f"lares/a/devices/{number}/state", b'{"boot": 1, "seq": 1}')
    assert len(live.duplicates._sequences) <= MAX_PRESSES


def test_a_replaced_entity_is_freed_without_the_collector() -> None:
    components = [
        "sensor",
        "switch",
        "light",
        "cover",
        "climate",
        "lock",
        "fan",
        "valve",
        "siren",
        "number",
        "select",
    ]
    catalog = new_catalog()
    gc.disable()
    try:
        for state in ("s", "t"):
            take(catalog, tuple(config(each, each, state_topic=state, options=["a"]) for each in components))
            if state == "s":
                rebuild(catalog)
                members = [entity for device in catalog.devices.values() for entity in device.entities]
                known = [weakref.ref(entity) for entity in members]
                del members
        rebuild(catalog)
        assert len(known) >= 8 and [each() for each in known] == [None] * len(known)
    finally:
        gc.enable()


def test_a_payload_other_than_json_is_parsed_once_for_all_entities(monkeypatch: pytest.MonkeyPatch) -> None:
    live, read = live_devices(), list[bytes | str]()
    names = ("e", "f", "g")
    table.announce(live, *(config("sensor", name, value_template="{{ value_json.x }}") for name in names))

    def parsed(payload: bytes | str) -> Any:
        read.append(payload)
        return parse_json(payload)

    monkeypatch.setattr(messages, "parse_json", parsed)
    receive(live, "s", b"[1, 2")
    assert read == ["[1, 2"]
