"""The cost of announcements and messages. Memory is limited, faults are reported, and expensive work waits."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import logging
import tracemalloc
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from appliance.adapters.mqtt import newest_messages
from appliance.adapters.mqtt.announcements import announcement_store
from appliance.adapters.mqtt.announcements.announcement import MAX_DISCOVERY_BYTES
from appliance.adapters.mqtt.announcements.home_assistant_announcements import parse_announcements
from appliance.adapters.mqtt.budget import BURST_SECS
from appliance.adapters.mqtt.inbox import Inbox
from appliance.adapters.mqtt.messages import ENTRY_BYTES, MAX_JSON_DEPTH, Message, Received, parse_payload
from appliance.adapters.mqtt.newest_messages import (
    MAX_INEXACT,
    MAX_REMEMBERED_BYTES,
    MAX_SMALL_BYTES,
    MAX_UNREAD,
    MAX_VERSIONS,
    NewestMessages,
)
from appliance.adapters.mqtt.refusals import MAX_REFUSED, Refusal
from appliance.adapters.mqtt.reports import MAX_REPORTED, MORE_FAULTS, REPEAT_SECS, CostReports, FaultReports
from appliance.adapters.mqtt.subscriptions import Subscriptions
from appliance.adapters.mqtt.templates.template import (
    CHARS_PER_TEMPLATE,
    MAX_PARSED_CHARS,
    PARSED,
    JinjaTemplate,
    ParsedTemplates,
)
from appliance.adapters.mqtt.templates.template_limits import ValueMissing
from appliance.cli.log_output import JournalLines, JsonLines, TextLines
from appliance.errors import Invalid
from appliance.log_limit import MAX_SAME_KIND
from tests.adapters.mqtt import table
from tests.adapters.mqtt.captures import Sent
from tests.adapters.mqtt.table import announce, message_loop, new_catalog, rebuild, receive, take
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
    reasons = [each.reason for each in catalog.refusals.by_key.values()]
    assert len(reasons) == 1 and reasons[0].endswith(f"{at} uses the unknown filter 'nope'"), reasons


@each_row("tilde", ["~", "\\u007e"])
def test_a_base_topic_fills_no_memory(tilde: str) -> None:
    topics = ",".join(f'"{number}topic": "{tilde}"' for number in range(1_000))
    payload = f'{{"~": "{"b" * 20_000}", {topics}}}'.encode()
    topic = "homeassistant/sensor/x/config"
    with pytest.raises(Invalid, match="base topic '~' is so long"):
        parse_announcements("homeassistant", topic, payload)


@pytest.mark.parametrize("innermost", ["[]", "{}", "[1]", '{"a": 1}'])
def test_json_has_at_most_32_levels(innermost: str) -> None:
    def nested(levels: int) -> str:
        return "[" * (levels - 1) + innermost + "]" * (levels - 1)

    parse_payload(nested(MAX_JSON_DEPTH).encode())
    with pytest.raises(Invalid, match="nested more than 32 levels deep"):
        parse_payload(nested(MAX_JSON_DEPTH + 1).encode())


def test_inherited_values_of_components_are_stored_once() -> None:
    topic = "homeassistant/device/x/config"
    parts = {f"c{number}": {"platform": "sensor", "state_topic": f"~/{number}"} for number in range(3)}
    payload = {"~": "base", "availability": [{"topic": "~/a"}], "components": parts}
    found = parse_announcements("homeassistant", topic, json.dumps(payload).encode())
    assert found is not None and len({id(each.availability) for each in found}) == 1
    assert [each.config["state_topic"] for each in found] == ["base/0", "base/1", "base/2"]
    assert found[0].availability == ({"topic": "base/a"},)


def test_configurations_that_are_too_large_are_not_stored() -> None:
    catalog = new_catalog()
    tracemalloc.start()
    try:
        for number in range(30):
            assert catalog.store.take_config(f"homeassistant/sensor/{number}/config", b"{" + b" " * (1 << 20) + b"}")
        assert tracemalloc.get_traced_memory()[0] < 4 << 20
    finally:
        tracemalloc.stop()
    assert len(catalog.refusals.by_key) == 30


def test_a_large_configuration_of_this_hub_is_no_fault() -> None:
    catalog = new_catalog()
    catalog.store.take_config(catalog.store._own_catalog, b"x" * (65 << 10))
    assert not catalog.refusals.by_key


def test_configurations_are_bounded_in_bytes_and_present_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcement_store, "MAX_CONFIGS_BYTES", 16 << 20)
    catalog = new_catalog()
    take(catalog, (config("sensor", "a", name="x" * 800), config("sensor", "b", name="x" * 800)))
    for size in (MAX_DISCOVERY_BYTES - 100, 10):
        numbers = itertools.count()
        while catalog.store.take_config(
            f"homeassistant/sensor/{size}_{next(numbers)}/config", b'{"state_topic":"s","name":"%s"}' % (b"x" * size)
        ):
            pass
    more = config("sensor", "c", name="x" * 800).payload
    assert not catalog.store.take_config("homeassistant/sensor/c/config", more)
    assert "16 MiB of memory" in catalog.refusals.limits["configurations"]
    take(catalog, (Sent("homeassistant/sensor/a/config", b"", retain=True),))
    assert not catalog.refusals.limits
    assert catalog.store.take_config("homeassistant/sensor/c/config", more)


MANY: dict[str, Any] = {"rl": [1] * 32, "btn": [1] * 32, "swc": [1] * 32, "so": {"73": 1, "114": 1}}
TASMOTA = {"t": "<n>", "ft": "%prefix%/%topic%/", "tp": [1, 2, 3], **MANY}


def parts_of(component: str, **fields: Any) -> str:
    """Return a device configuration with the maximum number of components."""
    return json.dumps({**fields, "cmps": {number: {"p": component, "t": "c", "cmd_t": "c"} for number in range(256)}})


FILLERS = [f"{{{{{number:8000}" for number in range(MAX_PARSED_CHARS // 8_000 + 1)]
"""Invalid templates that together fill the cache of templates. Only a short reason is stored for each."""


def empty_template_cache() -> None:
    for text in FILLERS:
        PARSED.find(text)


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
    empty_template_cache()
    catalog = new_catalog()
    take(catalog, (config("sensor", value_template="{{ value }}"),))
    tracemalloc.start()
    try:
        for number in range(10, 18):
            catalog.store.take_config(topic.replace("<n>", f"{number}"), payload.replace("<n>", f"{number}").encode())
        rebuild(catalog)
        empty_template_cache()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < catalog.store._bytes
        assert len(catalog.devices) > 8 and not catalog.refusals.by_key
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("count", "size", "parsed"), [(5_000, 40, 5_000), (10_000, 22, 20_000), (100, 8_000, 200)])
def test_a_template_is_parsed_once_unless_there_are_too_many_or_too_long_ones(
    count: int, size: int, parsed: int
) -> None:
    cache = ParsedTemplates()
    names = [f"a{number:0{size - 18}}" for number in range(count)]
    found = [cache.find(f"{{{{ value_json.{name} }}}}") for name in names * 2]
    assert (
        len({id(each) for each in found}) == parsed
        and len(cache._kept) * (size + CHARS_PER_TEMPLATE) <= MAX_PARSED_CHARS
    )


def test_faults_beyond_the_limit_are_summarised_in_one_line(clock: VirtualClock) -> None:
    loop, sentence = message_loop(clock), list[Any]()
    loop._publish._bus.listen(sentence.append)
    reports = FaultReports(loop._publish, clock)
    refusals = loop.announced.refusals
    for count in (MAX_REPORTED, 2_000, 2_000):
        refusals.by_key = {f"{number}": Refusal("x", "y", "is not JSON") for number in range(count)}
        reports.report(refusals)
        assert [each.reason for each in sentence[MAX_REPORTED:]] == ([MORE_FAULTS] if count > MAX_REPORTED else [])
    assert MAX_REPORTED < MAX_SAME_KIND, "the log takes all of them within a minute"


def test_costly_messages_of_many_devices_are_reported_in_one_line(clock: VirtualClock) -> None:
    loop, reported = message_loop(clock), list[Any]()
    loop._publish._bus.listen(reported.append)
    reports = CostReports(loop._publish, loop.announced.router, clock)
    for count in (1, 2):
        for number in range(50):
            reports.report(f"homeassistant/sensor/x{number}/config")
        assert len(reported) == count
        clock.suspend(REPEAT_SECS)


async def test_endless_topics_below_a_wildcard_fill_no_memory(clock: VirtualClock) -> None:
    loop, size = message_loop(clock), 128 * 1024
    for number in range(2_000):
        receive(loop, f"a/{number}", b"x" * size)
        receive(loop, f"a/{number}", b"\xff")
    assert len(loop.processor._newest) * size < MAX_REMEMBERED_BYTES and len(loop.announced.refusals.by_key) <= 1_000
    for number in range(MAX_VERSIONS + 10):
        receive(loop, f"lares/a/devices/{number}/state", b'{"boot": 1, "seq": 1}')
    assert len(loop.processor._newest._versions) <= MAX_VERSIONS


@pytest.mark.parametrize(("size", "limit"), [(10, 128 * 1024), (128 * 1024, MAX_REMEMBERED_BYTES)])
async def test_many_messages_do_not_make_a_device_of_a_bridge_unavailable(
    clock: VirtualClock, size: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bridge publishes its state only once, and a new announcement needs this state."""
    monkeypatch.setattr(newest_messages, "MAX_REMEMBERED_BYTES", limit)
    loop = message_loop(clock)
    keys = {"availability_topic": "bridge/state"}
    announce(loop, config("sensor", **keys), config("sensor", "all", state_topic="a/+", device={"ids": ["all"]}))
    receive(loop, "bridge/state", b"online", is_retained=True)
    for number in range(2 * limit // (size + ENTRY_BYTES)):
        receive(loop, f"a/{number}", b"x" * size)
    announce(loop, config("sensor", name="new", **keys))
    assert loop.announced.devices["mqtt:x"].is_available


def test_the_oldest_small_messages_are_forgotten_after_all_large_messages() -> None:
    newest, count = NewestMessages(), 2 * MAX_REMEMBERED_BYTES // MAX_SMALL_BYTES
    newest.add(Received("large", b"x" * MAX_SMALL_BYTES, is_retained=False))
    for number in range(count):
        newest.add(Received(f"{number:06}", b"x" * (MAX_SMALL_BYTES // 2), is_retained=False))
    topics = [each.topic for each in newest.list()]
    assert topics == [f"{number:06}" for number in range(count - len(topics), count)]
    assert 0 <= MAX_REMEMBERED_BYTES - sum(each.size for each in newest.list()) < MAX_SMALL_BYTES
    deque(newest.forget(topics), maxlen=0)
    newest.add(Received("large", b"x" * MAX_SMALL_BYTES, is_retained=False))
    newest.add(Received("large", b"x", is_retained=False))
    newest.add(Received("all", b"x" * MAX_REMEMBERED_BYTES, is_retained=False))
    assert [each.topic for each in newest.list()] == ["large"]


def test_endless_messages_about_availability_fill_no_memory() -> None:
    newest, size = NewestMessages(), MAX_SMALL_BYTES // 2
    for number in range(2 * MAX_REMEMBERED_BYTES // size):
        newest.add(Received(f"{number}", b"x" * size, is_retained=False), is_availability=True)
    assert 0 <= MAX_REMEMBERED_BYTES - sum(each.size for each in newest.list()) < MAX_SMALL_BYTES
    assert f"{number}" in {each.topic for each in newest.list()}


def test_removed_devices_leave_few_topics_in_memory() -> None:
    """Each small object from a flood may keep a whole page of memory in use."""
    loop, count = message_loop(), MAX_UNREAD + 300
    configs = [config("sensor", f"e{each}", state_topic=f"s/{each}", unique_id=f"e{each}") for each in range(count)]
    announce(loop, *configs)
    states = [Received(f"s/{each}", b"1", is_retained=False) for each in range(count)]
    deque(loop._process_all(states), maxlen=0)
    assert len(loop.processor._newest) == count
    announce(loop, *(Sent(each.topic, b"", retain=True) for each in configs[1:]))
    assert len(loop.processor._newest) == 1 + MAX_UNREAD >= len(loop._budget._cheap)
    assert states[0] in loop.processor._newest.list()


@each_row(
    ("filters", "payload", "kept"),
    [((), b"1", MAX_INEXACT), ((), b"\xff", 0), (("a/+",), b"1", MAX_INEXACT), (("a/+",), b"\xff", 0)],
)
def test_messages_at_any_number_of_topics_share_a_queue_and_leave_few_objects(
    filters: tuple[str, ...], payload: bytes, kept: int
) -> None:
    """Each small object from a flood may keep a whole page of memory in use."""
    loop, count = message_loop(), MAX_INEXACT + 500
    announce(
        loop, config("sensor", state_topic="s"), *(config("sensor", "all", state_topic=each) for each in filters)
    )
    deque(loop._process_all([Received("s", b"1", is_retained=False)]), maxlen=0)
    for number in range(count):
        loop.inbox.put(Received(f"a/{number}", payload, is_retained=False))
    assert len(loop.inbox._queues) == 1
    deque(loop._process_all(loop.inbox.take(count)), maxlen=0)
    topics = [each.topic for each in loop.processor._newest.list()]
    assert topics == ["s", *(f"a/{number}" for number in range(count - kept, count))]
    assert len(loop._budget._cheap) <= 1 + MAX_INEXACT and not loop._budget.parked


def test_configurations_that_waited_leave_no_topics_in_memory_and_delay_no_cheap_topic() -> None:
    loop = message_loop(clock := VirtualClock())
    announce(loop, config("sensor", state_topic="s"))
    state = Received("s", b"1", is_retained=False)
    deque(loop._process_all([state]), maxlen=0)
    loop._budget.spend("heavy", 2 * BURST_SECS, 2 * BURST_SECS)
    waiting = [config("sensor", f"e{number}") for number in range(50)]
    deque(loop._process_all(Received(each.topic, b"{", is_retained=True) for each in waiting), maxlen=0)
    assert len(loop._budget.parked) == len(waiting)
    clock.suspend(60)
    deque(loop._budget.resume(), maxlen=0)
    assert loop._budget._cheap == {"s"} and loop._budget.is_idle
    loop._budget.spend("heavy", 2 * BURST_SECS, 2 * BURST_SECS)
    deque(loop._process_all([state]), maxlen=0)
    assert not loop._budget.parked


@pytest.mark.parametrize("size", [0, 1, 100])
def test_a_message_needs_no_more_memory_than_is_counted(size: int) -> None:
    inbox, newest, messages = Inbox(lambda _: "x"), NewestMessages(), 3_000
    parts: tuple[Callable[[Received], object], ...] = (inbox.put, newest.add)
    for add in parts:
        tracemalloc.start()
        try:
            counted = 0
            for number in range(messages):
                message = Received(f"a/{number}", bytes(bytearray(size)), is_retained=False)
                counted += message.size
                add(message)
            assert tracemalloc.get_traced_memory()[0] <= counted
        finally:
            tracemalloc.stop()


def test_thousands_of_topics_are_forgotten_in_steps() -> None:
    newest, count = NewestMessages(), 1_000
    for number in range(count):
        newest.add(Received(f"a/{number}", b"x", is_retained=False))
    steps = sum(1 for _ in newest.forget([f"a/{number}" for number in range(count)]))
    assert steps == count and len(newest) == 0


def test_the_collector_tracks_few_objects_of_each_component() -> None:
    parts = {
        f"{platform}{number}": {"platform": platform, "name": "x", "device_class": "power", "command_topic": "c",
                                "value_template": f"{{{{ value_json.x{number} }}}}"}
        for platform in ("sensor", "binary_sensor", "switch", "number") for number in range(50)
    }  # fmt: skip
    payload = {"state_topic": "s", "availability": [{"topic": "a"}], "components": parts, "device": {"ids": "x"}}
    catalog = new_catalog()
    gc.collect()
    before = len(gc.get_objects())
    catalog.store.take_config("homeassistant/device/x/config", json.dumps(payload).encode())
    rebuild(catalog)
    gc.collect()
    assert sum(len(each.entities) for each in catalog.devices.values()) == len(parts)
    assert len(gc.get_objects()) - before < 3 * len(parts)


class CountingMessage(Message):
    parsed = 0

    @property
    def json(self) -> Any:
        self.parsed += 1
        return super().json


def test_a_payload_other_than_json_is_parsed_once_for_all_entities() -> None:
    message = CountingMessage("s", b"[1, 2", table.NOW)
    for _ in range(3):
        with pytest.raises(ValueMissing):
            message.rendered(JinjaTemplate("{{ value_json.x }}"))
    assert message.parsed == 1


@each_row(
    ("topic", "payload"),
    [
        ("homeassistant/sensor/<n>/config", '{"state_topic":"t"}'),
        ("homeassistant/device/<n>/config", parts_of("switch")),
        ("homeassistant/nothing/<n>/config", '{"state_topic":"t"}'),
        ("homeassistant/sensor/<n>/config", "{" + "x" * MAX_DISCOVERY_BYTES),
        ("homeassistant/sensor/a\n<n>/config", "{}"),
        ("tasmota/discovery/0000000000<n>/config", json.dumps(TASMOTA)),
        ("tasmota/discovery/0000000000<n>/config", "[]"),
        ("tasmota/discovery/<n>/config", "{}"),
    ],
)  # fmt: skip
def test_nothing_of_a_removed_announcement_is_kept(topic: str, payload: str) -> None:
    catalog = new_catalog()
    for text in (payload, ""):
        for number in range(10, 18):
            catalog.store.take_config(topic.replace("<n>", f"{number}"), text.replace("<n>", f"{number}").encode())
        rebuild(catalog)
    kept = [
        catalog.devices,
        catalog.refusals.by_key,
        catalog.router.filters,
        catalog.store._payloads,
        catalog.store._announced,
        catalog._built,
    ]
    assert (kept, catalog.store._bytes) == ([{}, {}, frozenset(), {}, {}, {}], 0)


def test_unreadable_announcements_fill_no_memory() -> None:
    catalog = new_catalog()
    for number in range(MAX_REFUSED + 100):
        catalog.store.take_config(f"homeassistant/sensor/{number}/config", b"x" * 1_000)
        catalog.store.take_config(f"homeassistant/nothing/{number}/config", b'{"state_topic":"t"}')
        catalog.store.take_config(f"homeassistant/sensor/{number}/config", b'{"state_topic":5}')
        catalog.store.take_config(f"tasmota/discovery/{number:012X}/config", b"x" * 1_000)
    assert len(catalog.refusals.by_key) == MAX_REFUSED and not catalog.store._payloads


async def test_announcements_without_end_fill_no_memory(clock: VirtualClock) -> None:
    loop = message_loop(clock)
    discovery = loop.discovery
    for number in range(MAX_REFUSED + 100):
        for payload in (b"{", b'{"state_topic": "t"}', b""):
            [*discovery.process(Received(f"homeassistant/sensor/{number}/config", payload, is_retained=False))]
    assert not discovery._seen and not loop.announced.refusals.by_key


@pytest.mark.parametrize("connection", [None, object()])
def test_announcements_without_a_connection_fill_no_memory(clock: VirtualClock, connection: Any) -> None:
    loop, topic = message_loop(clock), "homeassistant/sensor/x/config"
    loop.connection = connection
    [*loop._process_all([Received(topic, b'{"state_topic": "t"}', is_retained=True)])]
    assert loop.announced.store.has_config(topic) == (connection is not None)


def test_no_announcement_imitates_a_log_line(clock: VirtualClock, caplog: pytest.LogCaptureFixture) -> None:
    evil = "x\r\n2026-11-28 22:00:00.000 error hub: fake \x1b[31m\x07\u202e\u2028\x85"
    loop = message_loop(clock)
    reports = FaultReports(loop._publish, clock)
    loop._publish._bus.listen(lambda event: logging.getLogger("adapters").warning("%s", event))
    for topic, payload in (
        (f"homeassistant/sensor/{evil}/config", "{}"),
        ("homeassistant/sensor/a/config", evil),
        ("homeassistant/sensor/b/config", json.dumps({"state_topic": evil, "device": {"ids": evil, "name": evil}})),
        ("homeassistant/sensor/c/config", json.dumps({"state_topic": "t", "value_template": "{{ x|" + evil + " }}"})),
        (f"homeassistant/{evil}/d/config", json.dumps({"state_topic": "t"})),
        (f"tasmota/discovery/{evil}/config", evil),
        ("tasmota/discovery/0000000000AA/config", json.dumps({"t": evil, "ft": evil, "tp": [evil] * 3, "rl": evil})),
    ):
        loop.announced.store.take_config(topic, payload.encode())
    rebuild(loop.announced)
    reports.report(loop.announced.refusals)
    assert len(caplog.records) >= 6
    for lines in TextLines(), JournalLines(), JsonLines():
        assert [line for record in caplog.records if not (line := lines.format(record)).isprintable()] == []


class Topic(str):
    """A text to which a weak reference is possible."""

    __slots__ = ("__weakref__",)


class Broker:
    """Acknowledges all subscriptions."""

    async def subscribe(self, topics: Sequence[str]) -> None: ...

    async def unsubscribe(self, topics: Sequence[str]) -> None: ...


async def test_the_topics_of_removed_devices_are_freed() -> None:
    router = SimpleNamespace(filters=frozenset({Topic("a")}))
    subscriptions = Subscriptions((), cast("Any", router))
    keeping = asyncio.ensure_future(subscriptions.keep(cast("Any", Broker())))
    await asyncio.sleep(0)
    await subscriptions.renew()
    [gone] = map(weakref.ref, router.filters)
    router.filters = frozenset()
    assert gone() is not None
    await subscriptions.renew()
    assert gone() is None
    keeping.cancel()
    await asyncio.wait({keeping})
