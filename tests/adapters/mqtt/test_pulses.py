"""All changes are published in order. The state of an unavailable device never confirms a command."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from appliance.adapters.mqtt.message_loop import MessageLoop
from appliance.adapters.mqtt.messages import Outgoing, Received
from appliance.adapters.publisher import Publisher
from appliance.errors import AdapterFailed, Unanswered
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.layout import Layout
from appliance.home.model import Device, DeviceKind, Metadata
from appliance.home.registry import Registry
from tests.adapters.mqtt.captures import Sent
from tests.adapters.mqtt.table import announce, config, message_loop
from tests.fakes.clock import VirtualClock
from tests.fakes.rows import each_row

AVAILABILITY = {"availability_topic": "a"}
MOTION = ("binary_sensor/x", {"state_topic": "s", "device_class": "motion", **AVAILABILITY})
CELSIUS = {"device_class": "temperature", "unit_of_measurement": "°C"}
TEMPERATURE = ("sensor/x", {"state_topic": "s", "value_template": "{{ value_json.t }}", **CELSIUS})


def home_of(*configs: Sent) -> tuple[MessageLoop, list[dict[str, Any]]]:
    """Return the message loop of some devices, and a list that receives all attributes after each change."""
    clock, bus, shown = VirtualClock(), Bus(), list[dict[str, Any]]()

    def note(event: events.Event) -> None:
        assert isinstance(event, events.DeviceStateChanged)
        shown.append(dict(event.device.attributes))

    bus.listen(note, events.DeviceStateChanged)
    loop = message_loop(clock, publish=Publisher("mqtt", Registry(bus, clock), bus, clock))
    announce(loop, *configs)
    return loop, shown


def receive(loop: MessageLoop, *messages: tuple[str, str]) -> None:
    """Process messages as one batch."""
    for topic, text in messages:
        deque(loop.processor.process(Received(topic, text.encode(), False)), maxlen=0)
    deque(loop.processor.changed.flush(), maxlen=0)


BATCHES: list[tuple[tuple[str, dict[str, Any]], list[tuple[str, str]], str, list[Any]]] = [
    (MOTION, [("s", "OFF"), ("s", "ON"), ("s", "OFF")], "motion", ["clear", "detected", "clear"]),
    (MOTION, [("s", "ON"), ("s", "ON"), ("s", "OFF"), ("s", "ON")], "motion", ["detected", "clear", "detected"]),
    (MOTION, [("a", "online"), ("a", "offline"), ("a", "online")], "state", ["online", "unavailable", "online"]),
    (TEMPERATURE, [("s", '{"t":20}'), ("s", '{"t":null}'), ("s", '{"t":25}')], "temperature",
     [{"value": 20, "unit": "°C"}, None, {"value": 25, "unit": "°C"}]),
    (TEMPERATURE, [("s", '{"t":20}'), ("s", '{"t":"nan"}')], "temperature", [{"value": 20, "unit": "°C"}, None]),
]  # fmt: skip


@each_row(("entity", "messages", "attribute", "values"), BATCHES)
def test_every_change_within_a_batch_is_published(
    entity: tuple[str, dict[str, Any]], messages: list[tuple[str, str]], attribute: str, values: list[Any]
) -> None:
    topic, keys = entity
    loop, shown = home_of(config(topic, unique_id="x", **keys))
    shown.clear()
    receive(loop, *messages)
    assert [each.get(attribute) for each in shown] == values


def test_changes_of_different_attributes_in_a_batch_are_one() -> None:
    device = {"device": {"identifiers": ["x"]}}
    loop, shown = home_of(
        *(config(f"{kind}/{kind}", unique_id=kind, state_topic=kind, **device) for kind in ("sensor", "number"))
    )
    shown.clear()
    receive(loop, ("sensor", "a"), ("number", "5"))
    assert [set(each) for each in shown] == [{"custom.mqtt.sensor", "custom.mqtt.number", "state"}]


class Plug:
    """A connection to a plug. The plug may answer a command, and the answer may make the plug available."""

    def __init__(self, loop: MessageLoop, *answers: tuple[str, str]) -> None:
        self._loop = loop
        self._answers = answers
        self.sent: list[str] = []

    async def publish(self, message: Outgoing) -> None:
        self.sent.append(message.payload)
        receive(self._loop, *self._answers)


@pytest.mark.parametrize("keys", [{"state_topic": "s"}, {}])
@pytest.mark.parametrize("action", ["on", "off"])
async def test_a_command_to_an_unavailable_device_is_not_confirmed(keys: dict[str, str], action: str) -> None:
    loop, _ = home_of(config("switch/x", unique_id="x", command_topic="c", **AVAILABILITY, **keys))
    receive(loop, ("a", "online"), ("s", "ON"), ("a", "offline"))
    clock: Any = loop._clock
    connection: Any = Plug(loop)
    with pytest.raises(Unanswered, match="is unavailable") as error:
        await clock.run(loop.processor.commands.run(connection, "mqtt:x", Command(capability="power", action=action)))
    assert error.value.code == "device_unreachable"
    assert connection.sent == [action.upper()]


@pytest.mark.parametrize(
    ("answers", "is_done"),
    [
        ([("a", "online"), ("s", "ON")], True),
        ([("s", "ON"), ("a", "online")], True),
        ([("s", "ON")], False),
        ([("a", "online"), ("s", "ON"), ("a", "offline")], True),
    ],
)
async def test_only_an_available_device_confirms_a_command(answers: list[tuple[str, str]], *, is_done: bool) -> None:
    loop, _ = home_of(config("switch/x", unique_id="x", command_topic="c", state_topic="s", **AVAILABILITY))
    receive(loop, ("a", "online"), ("s", "ON"), ("a", "offline"))
    clock: Any = loop._clock
    connection: Any = Plug(loop, *answers)
    command = loop.processor.commands.run(connection, "mqtt:x", Command(capability="power", action="on"))
    if is_done:
        await clock.run(command)
    else:
        with pytest.raises(AdapterFailed):
            await clock.run(command)


STORED = {"contact": "closed", "battery": 80, "state": "online"}
DOOR = (
    config("binary_sensor/x", state_topic="s", device_class="door", unique_id="x", device={"identifiers": ["x"]},
           **AVAILABILITY),
    config("sensor/b", state_topic="b", device_class="battery", unit_of_measurement="%", unique_id="b",
           device={"identifiers": ["x"]}, **AVAILABILITY),
)  # fmt: skip

FIRST: list[tuple[list[tuple[str, str, bool]], list[tuple[set[str], set[str]]]]] = [
    ([("s", "ON", False)], [({"contact"}, set())]),
    ([("s", "ON", True)], [({"contact"}, {"contact"})]),
    ([("a", "offline", True), ("a", "online", True), ("s", "ON", True)],
     [({"state"}, set()), ({"state"}, set()), ({"contact"}, {"contact"})]),
    ([("b", "70", True), ("s", "ON", True)], [({"battery"}, {"battery"}), ({"contact"}, {"contact"})]),
    ([("s", "OFF", True), ("s", "ON", False)], [({"contact"}, set())]),
    ([("s", "OFF", True), ("s", "ON", True)], [({"contact"}, set())]),
]  # fmt: skip
"""Each row: the messages after a start, whether they are retained, the changes, and the changes that only set a
baseline."""


@each_row(("messages", "expected"), FIRST)
def test_after_a_start_a_retained_message_sets_the_baseline_of_its_own_attributes(
    messages: list[tuple[str, str, bool]], expected: list[tuple[set[str], set[str]]]
) -> None:
    clock, bus = VirtualClock(), Bus()
    registry = Registry(bus, clock)
    stored = Device(
        id="mqtt:x", room_id=None, kind=DeviceKind.SENSOR, attributes=STORED, metadata=Metadata(source="mqtt"),
        updated_at=clock.now(), last_seen=clock.now(),
    )  # fmt: skip
    registry.restore(Layout(), [stored])
    loop = message_loop(clock, publish=Publisher("mqtt", registry, bus, clock))
    loop.processor.restored.remember()
    announce(loop, *DOOR)
    receive(loop, ("a", "online"))
    found: list[tuple[set[str], set[str]]] = []

    def note(event: events.Event) -> None:
        assert isinstance(event, events.DeviceStateChanged)
        found.append((set(event.changed), set(event.baseline)))

    bus.listen(note, events.DeviceStateChanged)
    for topic, text, is_retained in messages:
        deque(loop.processor.process(Received(topic, text.encode(), is_retained)), maxlen=0)
        deque(loop.processor.changed.flush(), maxlen=0)
    assert found == expected


def test_alarms_are_listed_by_the_class_of_their_sensor() -> None:
    loop, _ = home_of(
        *(
            config(f"binary_sensor/{each}", state_topic=each, device_class=each, device={"identifiers": ["x"]})
            for each in ("gas", "smoke", "motion", "safety")
        )
    )
    alarms = loop.announced.devices["mqtt:x"].observation().vendor_specific["alarms"]
    assert alarms == ["custom.mqtt.gas", "custom.mqtt.safety", "smoke"]
