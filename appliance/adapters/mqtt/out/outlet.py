"""The outlet: publishes this hub's devices, scenes and automations on a broker, and takes commands from there."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping

import orjson

from appliance.adapters.mqtt.broker import Broker, BrokerConnection, keep_connected
from appliance.adapters.mqtt.inbox import Inbox, Received
from appliance.adapters.mqtt.mqtt_settings import Mqtt
from appliance.adapters.mqtt.out.components import announcement, hub_announcement
from appliance.adapters.mqtt.out.out_topics import HomeAccess, HubTopics, decoded, discovery_id
from appliance.adapters.mqtt.payloads import Outgoing, parse_json
from appliance.clock import Clock, timestamp
from appliance.errors import Invalid, LaresError, Unreachable
from appliance.home import events
from appliance.home.commands import Command
from appliance.home.model import Device
from appliance.tasks import Tasks

GATHER_SECS = 0.05
"""Seconds for which the changes of a device are gathered before they are published."""

CATALOG_SECS = 1.0
"""Seconds between two comparisons of scenes and automations with what was published."""

MAX_EVENTS = 50
"""Names of events that are remembered of one device."""

MAX_FRAMES = 1_000
"""Events that wait to be published; the oldest make room."""

log = logging.getLogger("adapters")


class Outlet:
    """Publishes from entering the context to leaving it. Devices of `brokers`, sections of MQTT, are not announced.

    `boot` is higher at each start, so that subscribers can order the states of two runs.
    """

    def __init__(
        self,
        settings: Mqtt,
        hub_id: str,
        boot: int,
        home: HomeAccess,
        clock: Clock,
        brokers: frozenset[str],
        client_id: str,
    ) -> None:
        self._topics = HubTopics(hub_id, settings.discovery_prefix)
        self._boot = boot
        self._home = home
        self._clock = clock
        self._brokers = brokers
        self._inbox = Inbox()
        self._broker = Broker(settings, client_id, self._topics.status, self._inbox.put)
        self._tasks = Tasks()
        self._changed: set[str] = set()
        self._has_changed = asyncio.Event()
        self._frames: deque[bytes] = deque(maxlen=MAX_FRAMES)
        self._sequence = 0
        self._announced: dict[str, bytes] = {}
        self._events: dict[str, dict[str, None]] = {}
        self._catalogs: tuple[Mapping[str, str], Mapping[str, str]] | None = None  # names by id, as announced
        self._automations: dict[str, str] = {}  # what was published of each, by id
        self._connection: BrokerConnection | None = None

    @property
    def is_connected(self) -> bool:
        """Whether the broker is there."""
        return self._connection is not None

    async def __aenter__(self) -> Outlet:
        self._home.bus.listen(self._on_event)
        self._tasks.start(self._keep_connected(), "publishing to the broker")
        self._tasks.start(self._keep_taking(), "commands of the broker")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    def _on_event(self, event: events.Event) -> None:
        if self._connection is not None and self._is_own(event) and (frame := self._home.frame_of(event)):
            self._frames.append(frame)
            self._has_changed.set()
        match event:
            case events.DeviceStateChanged(device=device) | events.DeviceUpdated(device=device):
                self._mark_changed(device.id)
            case events.DeviceRemoved(device_id=id_) | events.DeviceRoomChanged(device_id=id_):
                self._mark_changed(id_)
            case events.RoomUpdated(room=room):
                for device in self._home.registry.list_room_devices(room.id):
                    self._mark_changed(device.id)
            case events.DeviceEvent(device_id=id_, event=name, data=data):
                self._publish_event(id_, name, data)

    def _is_own(self, event: events.Event) -> bool:
        """Whether it is not of a device that came in over MQTT."""
        device = getattr(event, "device", None)
        device_id = getattr(event, "device_id", "") if device is None else device.id
        return device_id.partition(":")[0] not in self._brokers

    def _mark_changed(self, device_id: str) -> None:
        self._changed.add(device_id)
        self._has_changed.set()

    async def _keep_connected(self) -> None:
        await keep_connected(self._broker, self._clock, self._session, lambda error: log.debug("out: %s", error))

    async def _session(self, connection: BrokerConnection) -> None:
        """Publish everything, then every change, until the connection is lost."""
        self._inbox.clear()
        self._frames.clear()
        self._announced.clear()
        self._catalogs = None
        self._automations = {}
        self._connection = connection
        try:
            await connection.subscribe([*self._topics.commands, *self._topics.leftovers])
            await connection.say_online()
            for device in self._home.registry.list_devices():
                self._mark_changed(device.id)
            await self._publish_catalogs(connection)
            looked_at = self._clock.monotonic()
            while True:
                await self._clock.wait(self._has_changed, CATALOG_SECS)
                await self._clock.sleep(GATHER_SECS)
                await self._publish_changes(connection)
                while self._frames:
                    message = Outgoing(self._topics.events, self._frames.popleft().decode())
                    await connection.publish(message)
                if self._clock.monotonic() - looked_at >= CATALOG_SECS:
                    looked_at = self._clock.monotonic()
                    await self._publish_catalogs(connection)
        finally:
            self._connection = None

    async def _publish_changes(self, connection: BrokerConnection) -> None:
        self._has_changed.clear()
        changed, self._changed = self._changed, set()
        ends = await asyncio.gather(
            *(self._publish_device(connection, each) for each in sorted(changed)), return_exceptions=True
        )
        for end in ends:
            if isinstance(end, BaseException):
                self._changed |= changed
                raise end

    async def _publish_device(self, connection: BrokerConnection, device_id: str) -> None:
        config = self._topics.config(discovery_id(device_id))
        state_topic = self._topics.of("devices", device_id, "state")
        device = self._find(device_id)
        if device is None:
            if self._announced.pop(device_id, None) is not None:
                await connection.publish(_retained(config, ""))
                await connection.publish(_retained(state_topic, ""))
            return
        room = self._room_of(device)
        announced = announcement(device, room, self._topics, tuple(self._events.get(device_id, ())))
        if self._announced.get(device_id) != announced:
            self._announced[device_id] = announced
            await connection.publish(_retained(config, announced.decode()))
        self._sequence += 1
        state = {
            "boot": self._boot,
            "seq": self._sequence,
            "at": timestamp(device.updated_at),
            "name": device.name,
            "room": room,
            "attributes": device.attributes,
        }
        await connection.publish(_retained(state_topic, orjson.dumps(state).decode()))

    def _find(self, device_id: str) -> Device | None:
        """The device that this hub publishes under an id; None where there is none, or it came in over MQTT."""
        found = self._home.registry.find_devices([device_id])
        return found[0] if found and found[0].metadata.source not in self._brokers else None

    def _room_of(self, device: Device) -> str | None:
        return None if device.room_id is None else self._home.registry.get_room(device.room_id).name

    def _publish_event(self, device_id: str, name: str, data: Mapping[str, object]) -> None:
        if self._connection is None or self._find(device_id) is None:
            return
        known = self._events.setdefault(device_id, {})
        if name not in known and len(known) < MAX_EVENTS:
            known[name] = None
            self._mark_changed(device_id)
        payload = orjson.dumps({**data, "event_type": name}).decode()
        message = Outgoing(self._topics.of("devices", device_id, "event"), payload, qos=1)
        self._tasks.start(self._try(self._connection, message), f"event of {device_id}")

    async def _publish_catalogs(self, connection: BrokerConnection) -> None:
        """Publish the scenes and automations, and which are enabled, where that differs from before."""
        scenes, automations = self._home.scenes(), self._home.automations()
        names = {id_: name for id_, (name, _) in automations.items()}
        if self._catalogs != (scenes, names):
            self._catalogs = scenes, names
            announced = hub_announcement(scenes, names, self._topics).decode()
            await connection.publish(_retained(self._topics.config("hub"), announced))
        states = {id_: "on" if is_enabled else "off" for id_, (_, is_enabled) in automations.items()}
        published, self._automations = self._automations, states
        for id_ in published.keys() | states.keys():
            if published.get(id_) != states.get(id_):
                topic = self._topics.of("automations", id_, "state")
                await connection.publish(_retained(topic, states.get(id_, "")))

    async def _keep_taking(self) -> None:
        while True:
            await self._inbox.wait()
            for received in self._inbox.take(20):
                if self._connection is not None:
                    self._on_message(self._connection, received)
            await self._clock.sleep(0)

    def _on_message(self, connection: BrokerConnection, received: Received) -> None:
        """Run a command, or clear an outdated message that an earlier run left."""
        levels = received.topic.split("/")
        if received.topic.startswith(f"{self._topics.prefix}/") or levels[-1] == "state":
            if received.is_retained and received.payload and not self._is_current(received.topic, levels):
                clearing = self._try(connection, _retained(received.topic, ""))
                self._tasks.start(clearing, f"clearing of {received.topic}")
            return
        if received.is_retained:
            log.warning(
                "the command at %s is retained and was left alone: it would come again and again", received.topic
            )
            return
        if len(levels) == 5 and len(received.payload) <= 64 * 1024:
            work = self._run_command(connection, levels[2], decoded(levels[3]), received.payload)
            self._tasks.start(work, f"command of the broker at {received.topic}")

    def _is_current(self, topic: str, levels: list[str]) -> bool:
        if levels[-1] == "config":
            devices = (
                each for each in self._home.registry.list_devices() if each.metadata.source not in self._brokers
            )
            return levels[-2] == "hub" or any(discovery_id(each.id) == levels[-2] for each in devices)
        if levels[2] == "automations":
            return decoded(levels[3]) in self._automations
        return self._find(decoded(levels[3])) is not None

    async def _run_command(self, connection: BrokerConnection, target: str, id_: str, payload: bytes) -> None:
        try:
            if target == "scenes":
                self._home.run_scene(id_)
            elif target == "automations":
                if payload not in (b"on", b"off"):
                    raise Invalid("must be on or off")
                await self._home.switch(id_, payload == b"on")
                await self._publish_catalogs(connection)
            else:
                await self._command(connection, id_, payload)
        except Unreachable as error:
            log.debug("out: %s", error)
        except LaresError as error:
            log.info("out: %s %s: %s", target, id_, error)

    async def _command(self, connection: BrokerConnection, device_id: str, payload: bytes) -> None:
        """Send a command to a device and publish its result."""
        try:
            device = self._find(device_id)
            if device is None:
                raise Invalid(f"device '{device_id[:100]}' not found")
            [outcome] = await self._home.send([device], Command.parse(parse_json(payload)), "device")
            status, message = str(outcome.status), outcome.message
        except LaresError as error:
            status, message = "error", str(error)
        result = {"status": status} if message is None else {"status": status, "message": message}
        topic = self._topics.of("devices", device_id, "result")
        await connection.publish(Outgoing(topic, orjson.dumps(result).decode(), qos=1))

    async def _try(self, connection: BrokerConnection, message: Outgoing) -> None:
        try:
            await connection.publish(message)
        except Unreachable as error:
            log.debug("out: %s", error)


def _retained(topic: str, payload: str) -> Outgoing:
    """A message that the broker keeps; an empty one makes it forget."""
    return Outgoing(topic, payload, qos=1, retain=True)
