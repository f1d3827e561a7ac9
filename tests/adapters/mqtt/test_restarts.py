"""Values from before a restart are kept until a device sends new values, because many devices send each value only
once."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import pytest

from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.mqtt.announcements.discovery import Phase
from appliance.adapters.mqtt.messages import Received
from appliance.errors import Unreachable
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.registry import Registry
from tests.adapters.mqtt.table import announce, config, message_loop, rebuild, receive
from tests.fakes.clock import VirtualClock
from tests.fakes.context import context_of
from tests.fakes.rows import each_row

VALUE = {"custom.mqtt.x": 21, "custom.mqtt.y": 21}


class RestartingHub:
    """A hub with one device. `restart` restarts the hub, but keeps the home.

    The entities of the device are announced one after the other, as in a flood of announcements.
    """

    def __init__(self, session: DeviceSession, clock: VirtualClock, **fields: Any) -> None:
        bus = Bus()
        self.registry = Registry(bus, clock)
        self._clock = clock
        self.publish = context_of("mqtt", session, clock, registry=self.registry, bus=bus).publish
        keys = {"device": {"identifiers": ["x"]}, "state_topic": "x", "unit_of_measurement": "m", **fields}
        self._configs = [config(f"sensor/{name}", unique_id=name, **keys) for name in ("x", "y")]
        self.restart()

    def restart(self, *first: Received) -> None:
        """Restart the hub. `first` contains the messages that come before the old values are restored."""
        self.loop = message_loop(self._clock, publish=self.publish)
        self.loop.processor.restored.remember()
        for sent in self._configs:
            self.loop.announced.store.take_config(sent.topic, sent.payload)
            rebuilt = rebuild(self.loop.announced)
            for received in first:
                self.receive(received.topic, received.payload)
            list(self.loop.processor.publish_rebuilt(rebuilt))
        self.loop.processor.restored.forget_known(self.loop.announced.devices)

    def receive(self, topic: str, payload: bytes) -> None:
        receive(self.loop, topic, payload, is_retained=True)

    @property
    def shown(self) -> Mapping[str, Any]:
        return self.registry.find_devices(["mqtt:x"])[0].attributes


@pytest.mark.parametrize("count", [1, 2])
async def test_unretained_values_survive_restarts(session: DeviceSession, clock: VirtualClock, count: int) -> None:
    hub = RestartingHub(session, clock, availability_topic="x/status")
    hub.receive("x/status", b"online")
    hub.receive("x", b"21")
    for _ in range(count):
        hub.restart(Received("x/status", b"online", is_retained=True))
        assert hub.shown == {**VALUE, "state": "online"}


async def test_a_value_stays_expired_over_a_restart(session: DeviceSession, clock: VirtualClock) -> None:
    hub = RestartingHub(session, clock, expire_after=60)
    assert hub.shown == {"state": "unavailable"}, "no message has arrived yet"
    hub.receive("x", b"21")
    hub.restart()
    assert hub.shown == {**VALUE, "state": "online"}
    await clock.advance(61, sleepers=0)
    list(hub.loop.processor.tick())
    list(hub.loop.processor.changed.flush())
    for _ in range(2):
        assert hub.shown == {"state": "unavailable"}
        hub.restart()
    hub.receive("x", b"21")
    assert hub.shown == {**VALUE, "state": "online"}


async def test_a_device_whose_configuration_broke_while_the_hub_was_away_is_unavailable_after_its_start(
    session: DeviceSession, clock: VirtualClock
) -> None:
    known = RestartingHub(session, clock)
    known.receive("x", b"21")
    known.publish.lost(Unreachable("the hub was stopped"))
    loop = message_loop(clock, publish=known.publish)
    discovery = loop.discovery
    discovery._begin()
    discovery._phase = Phase.SETTLED
    loop.announced.store.take_config("homeassistant/sensor/x/config", b"{")
    for _ in range(2):
        known.publish.answered()
        await discovery._rebuild()
        assert known.shown == {**VALUE, "state": "unavailable"}


async def test_a_message_from_before_the_loss_of_the_broker_is_shown_after_its_return(
    session: DeviceSession, clock: VirtualClock
) -> None:
    hub = RestartingHub(session, clock)
    hub.receive("x", b"20")
    hub.publish.lost(Unreachable("the broker has closed the connection"))
    hub.receive("x", b"21")
    assert hub.shown == {"custom.mqtt.x": 20, "custom.mqtt.y": 20, "state": "offline"}
    hub.publish.answered()
    list(hub.loop.processor.changed.flush())
    assert hub.shown == {**VALUE, "state": "online"}


def test_a_press_during_a_new_announcement_of_its_device_is_not_lost() -> None:
    loop, happened = message_loop(), list[events.Event]()
    loop._publish._bus.listen(happened.append)
    keys = {"state_topic": "x", "event_types": ["single"], "device": {"identifiers": ["x"]}}
    announce(loop, config("sensor/a", unique_id="a", **keys), config("event/b", unique_id="b", **keys))
    reading = loop.processor.process(Received("x", b'{"event_type": "single"}', is_retained=False))
    next(reading)  # the sensor has read the message, but the event entity has not
    announce(loop, config("event/b", unique_id="b", name="new", **keys))
    deque(reading, maxlen=0)
    assert [each.event for each in happened if isinstance(each, events.DeviceEvent)] == ["single"]


@pytest.mark.parametrize(("component", "keys"), [("sensor", {}), ("event", {"event_types": ["single"]})])
def test_a_new_announcement_keeps_the_availability_and_repeats_no_event(component: str, keys: dict[str, Any]) -> None:
    loop, happened = message_loop(), list[events.Event]()
    loop._publish._bus.listen(happened.append)
    keys |= {"unique_id": "x", "state_topic": "x", "availability_topic": "x/status", "device": {"identifiers": ["x"]}}
    announce(loop, config(f"{component}/x", **keys))
    receive(loop, "x/status", b"online", is_retained=True)
    receive(loop, "x", b'{"event_type": "single"}')
    before = [each for each in happened if isinstance(each, events.DeviceEvent)]
    announce(loop, config(f"{component}/x", name="new", **keys))
    assert loop.announced.devices["mqtt:x"].is_available
    assert [each for each in happened if isinstance(each, events.DeviceEvent)] == before


DEVICE = {"device": {"identifiers": ["d"]}}
UNITS: list[tuple[str, dict[str, Any], dict[str, Any], str, Any, str, Any]] = [
    ("sensor", {"state_topic": "s", "device_class": "temperature"}, {"unit_of_measurement": "°F"}, "temperature",
     {"value": 68, "unit": "°F"}, "°C", {"value": 68, "unit": "°C"}),
    ("sensor", {"state_topic": "s"}, {"unit_of_measurement": "W"}, "custom.mqtt.x", None, "kW", 68),
    ("sensor", {"state_topic": "+"}, {"unit_of_measurement": "W"}, "custom.mqtt.x", None, "kW", 68),
    ("number", {"state_topic": "s", "command_topic": "c"}, {"unit_of_measurement": "W"}, "custom.mqtt.x", None, "kW",
     68),
    ("sensor", {"state_topic": "s", "device_class": "power"}, {"unit_of_measurement": "W"}, "power_consumption",
     {"value": 68, "unit": "W"}, "W", {"value": 68, "unit": "W"}),
    ("climate", {"current_temperature_topic": "s"}, {"temperature_unit": "F"}, "temperature",
     {"value": 68, "unit": "°F"}, "C", {"value": 68, "unit": "°C"}),
    ("climate", {"temperature_low_state_topic": "s"}, {"temperature_unit": "F"},
     "custom.mqtt.target_temperature_low", None, "C", 68),
]  # fmt: skip
"""Each row: the component, its keys, the key with the first unit, the attribute, its value after a change of the
unit, the second unit, and the value after the next message."""


@each_row(("component", "keys", "unit", "attribute", "kept", "next_unit", "after"), UNITS)
def test_a_new_unit_does_not_apply_to_earlier_values(
    component: str, keys: dict[str, Any], unit: dict[str, str], attribute: str, kept: Any, next_unit: str, after: Any
) -> None:
    def shown() -> Any:
        return loop.announced.devices["mqtt:d"].attributes.get(attribute)

    def take_config(**fields: Any) -> None:
        sent = config(f"{component}/x", unique_id="x", **DEVICE, **fields)
        deque(loop.discovery.process(Received(sent.topic, sent.payload, is_retained=True)), maxlen=0)

    def remove_config() -> None:
        topic = config(f"{component}/x").topic
        deque(loop.discovery.process(Received(topic, b"", is_retained=True)), maxlen=0)

    def rebuild_all() -> None:
        deque(loop.processor.publish_rebuilt(rebuild(loop.announced)), maxlen=0)

    loop = message_loop()
    take_config(**keys, **unit)
    rebuild_all()
    receive(loop, "s", b"68")
    before = shown()
    assert before is not None
    changed = dict.fromkeys(unit, next_unit)
    take_config(**keys, **changed)
    assert shown() == kept
    rebuild_all()
    assert shown() == kept
    take_config(**keys, **changed, name="Renamed")
    rebuild_all()
    assert shown() == kept
    receive(loop, "s", b"68")
    assert shown() == after
    take_config(**keys, **unit)
    receive(loop, "s", b"68")
    rebuild_all()
    assert shown() == before, "a message between an announcement and the rebuild has the new unit"
    take_config(**keys, **changed)
    take_config(**keys, **unit)
    rebuild_all()
    receive(loop, "s", b"68")
    assert shown() == before, "a unit that changes back before the rebuild"
    for fields in (unit, changed):
        remove_config()
        take_config(**keys, **fields)
        rebuild_all()
        assert shown() == (before if fields == unit else kept), "an announcement that is removed and replaced"
    receive(loop, "s", b"68")
    for former, fields in ((changed, changed), (changed, unit), (unit, changed)):
        last = shown()
        remove_config()
        rebuild_all()
        take_config(**keys, **fields)
        rebuild_all()
        assert shown() == (last if fields == former or isinstance(last, dict) else None)
        receive(loop, "s", b"68")
        assert shown() == (before if fields == unit else after), "the next message has the unit"


async def test_a_unit_that_changed_while_the_hub_was_off_ends_a_stored_number(
    session: DeviceSession, clock: VirtualClock
) -> None:
    hub = RestartingHub(session, clock)
    hub.receive("x", b"21")
    assert hub.shown["custom.mqtt.x"] == 21
    hub.restart()
    assert hub.shown["custom.mqtt.x"] == 21
    keys = {"device": {"identifiers": ["x"]}, "state_topic": "x", "unit_of_measurement": "km"}
    hub._configs = [config(f"sensor/{name}", unique_id=name, **keys) for name in ("x", "y")]
    hub.restart()
    assert "custom.mqtt.x" not in hub.shown
