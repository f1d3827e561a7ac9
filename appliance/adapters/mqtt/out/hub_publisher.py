"""Publishes this hub's devices, scenes, and automations on a broker, and runs commands from the broker."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from urllib.parse import unquote

import orjson

from appliance.adapters.mqtt.broker import Broker, BrokerConnection
from appliance.adapters.mqtt.broker_reconnection import BrokerReconnection
from appliance.adapters.mqtt.hub_states import HUB_STATE, parse_version
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.messages import Outgoing, Received, decode_text, retained
from appliance.adapters.mqtt.out.command_queues import CommandQueues, HubCommand
from appliance.adapters.mqtt.out.discovery_payloads import device_payload, hub_payload
from appliance.adapters.mqtt.out.home_access import HomeAccess
from appliance.adapters.mqtt.out.topics import HubTopics, discovery_id
from appliance.adapters.mqtt.retained_messages import RetainedMessages
from appliance.clock import Clock, timestamp
from appliance.errors import Busy, LaresError, NotFound, Stopping, Unreachable
from appliance.event_loop import in_steps, wait_in_line
from appliance.home import events
from appliance.home.commands import Command
from appliance.home.model import Device
from appliance.tasks import Tasks

GATHER_SECS = 0.05
"""Seconds during which the changes of a device are collected before they are published."""

CATALOG_SECS = 1.0
"""Maximum seconds between two checks for changed scenes and automations."""

MAX_PUBLISHED_AT_ONCE = 32
"""Maximum number of devices that are encoded in one turn of the loop."""

MAX_EVENTS = 50
"""Maximum number of event names per device."""

MAX_FRAMES = 1_000
"""Maximum number of events that wait to be published. The oldest events are dropped."""

MAX_SENDING = 1_000
"""Maximum number of results and events that wait or are in transit to the broker. Further results and events are
dropped."""

MAX_UNSENT_BYTES = 4 << 20
"""Maximum total size of the events that wait to be published, and separately of the results and events in transit."""

log = logging.getLogger("adapters")


class HubPublisher:
    """Publishes inside its `async with` block. Devices of `brokers`, the MQTT sections, are not announced.

    `boot` is higher at each start, so that subscribers can order the states of two runs. If another client publishes
    a newer version, `boot` becomes higher than that version's.
    """

    def __init__(
        self,
        settings: Mqtt,
        hub_id: str,
        boot: int,
        home: HomeAccess,
        clock: Clock,
        brokers: Collection[str],
        client_id: str,
    ) -> None:
        self._topics = HubTopics(hub_id, settings.discovery_prefix)
        self._boot = boot
        self._home = home
        self._clock = clock
        self._brokers = brokers
        self._settings = settings
        self._client_id = client_id
        self._tasks = Tasks()
        self._changed: set[str] = set()
        self._has_changed = asyncio.Event()
        self._frames: deque[bytes] = deque()
        self._frames_bytes = 0
        self._sequence = 0
        self._events: dict[str, dict[str, None]] = {}
        self._retained = RetainedMessages("publishing", clock)
        self._catalogs: tuple[Mapping[str, str], Mapping[str, str]] | None = None  # announced scenes and automations
        self._revision: object = None  # of the announced scenes and automations
        self._automations: set[str] = set()  # state topics of the automations
        self._sending = self._sending_bytes = 0  # the number and size of results and events
        self._connection: BrokerConnection | None = None
        self._is_closing = False

    async def __aenter__(self) -> HubPublisher:
        self._tasks.start(self._keep_publishing(), "publishing to the broker")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_closing = True  # otherwise, each further command would start work that the exit waits for
        await self._tasks.__aexit__()

    async def _keep_publishing(self) -> None:
        """Publish on each connection to the broker until cancelled."""
        commands = CommandQueues(self._tasks, self._run_command, self._answer)
        receive = partial(self._on_message, commands)
        broker = Broker(self._settings, self._client_id, self._topics.status, receive)
        reconnection = BrokerReconnection(
            broker, self._clock, self._session, lambda error: log.debug("publishing: %s", error)
        )
        forget = self._home.bus.listen(self._on_event)
        try:
            await reconnection.run()
        finally:
            forget()

    def _on_event(self, event: events.Event) -> None:
        if self._connection is not None and self._is_own(event) and (frame := self._home.frame_of(event)):
            self._add_frame(frame)
            self._has_changed.set()
        match event:
            case events.DeviceStateChanged(device=device) | events.DeviceUpdated(device=device):
                self._mark_changed(device.id)
            case events.DeviceDetailsChanged(device=device, has_new_commands=True):
                self._mark_changed(device.id)
            case events.DeviceRemoved(device_id=id_) | events.DeviceRoomChanged(device_id=id_):
                self._mark_changed(id_)
            case events.RoomUpdated(room=room):
                for device in self._home.registry.list_room_devices(room.id):
                    self._mark_changed(device.id)
            case events.DeviceEvent(device_id=id_, event=name, data=data):
                self._publish_event(id_, name, data)

    def _add_frame(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._frames_bytes += len(frame)
        while len(self._frames) > MAX_FRAMES or self._frames_bytes > MAX_UNSENT_BYTES:
            self._take_frame()

    def _take_frame(self) -> bytes:
        """Remove and return the oldest frame."""
        frame = self._frames.popleft()
        self._frames_bytes -= len(frame)
        return frame

    def _is_own(self, event: events.Event) -> bool:
        """Return whether the event's device does not come from MQTT."""
        device = getattr(event, "device", None)
        return self._is_announced(getattr(event, "device_id", "") if device is None else device.id)

    def _is_announced(self, device_id: str) -> bool:
        return device_id.partition(":")[0] not in self._brokers

    def _mark_changed(self, device_id: str) -> None:
        if self._is_announced(device_id):
            self._changed.add(device_id)
            self._has_changed.set()

    async def _session(self, connection: BrokerConnection) -> None:
        """Publish until the connection is lost. An unexpected error ends only this connection."""
        try:
            await self._publish_all(connection)
        except LaresError:
            raise
        except Exception as error:
            log.exception("publishing failed; Lares reconnects and publishes again")
            raise Unreachable(f"publishing failed ({type(error).__name__}: {error})") from error

    async def _publish_all(self, connection: BrokerConnection) -> None:
        """Publish the current state, then each change."""
        self._frames.clear()
        self._frames_bytes = 0
        self._retained.clear()
        self._catalogs = self._revision = None
        self._automations.clear()
        self._connection = connection
        try:
            await connection.subscribe(self._topics.commands)
            await connection.publish_online()
            self._retained.note_published(self._topics.status, "online")
            for device in self._home.registry.list_devices():
                self._mark_changed(device.id)
            await self._publish_changes(connection)
            await self._publish_catalogs(connection)
            # The retained messages of earlier runs arrive now, and are deleted. Messages of this run arrive too.
            await connection.subscribe([*self._topics.leftovers, self._topics.status])
            looked_at = self._clock.monotonic()
            while True:
                await self._clock.wait(self._has_changed, CATALOG_SECS)
                await self._clock.sleep(GATHER_SECS)
                await self._publish_changes(connection)
                await self._publish_catalogs(connection)
                while self._frames:
                    message = Outgoing(self._topics.events, self._take_frame().decode())
                    await connection.publish(message)
                if self._clock.monotonic() - looked_at >= CATALOG_SECS:
                    looked_at = self._clock.monotonic()
                    await self._retained.restore_overwritten(connection)
        finally:
            self._connection = None
            if self._is_closing:
                await self._retained.restore_at_end(connection)

    async def _publish_changes(self, connection: BrokerConnection) -> None:
        self._has_changed.clear()
        changed, self._changed = sorted(self._changed), set()
        for first in range(0, len(changed), MAX_PUBLISHED_AT_ONCE):
            some = changed[first : first + MAX_PUBLISHED_AT_ONCE]
            work = (self._publish_device(connection, each) for each in some)
            for end in await asyncio.gather(*work, return_exceptions=True):
                if isinstance(end, BaseException):
                    try:
                        raise end
                    finally:
                        del end  # a variable that refers to a raised exception forms a cycle with its traceback

    async def _publish_device(self, connection: BrokerConnection, device_id: str) -> None:
        config = self._topics.config(discovery_id(device_id))
        state_topic = self._topics.of("devices", device_id, "state")
        device = self._find(device_id)
        if device is None:
            self._events.pop(device_id, None)
            await self._retained.publish(connection, config, "")
            await self._retained.publish(connection, state_topic, "")
            return
        room = self._room_of(device)
        announced = device_payload(device, room, self._topics, tuple(self._events.get(device_id, ())))
        await self._retained.publish(connection, config, announced.decode())
        await self._retained.publish(connection, state_topic, self._next_state(device, room))

    def _room_of(self, device: Device) -> str | None:
        return None if device.room_id is None else self._home.registry.get_room(device.room_id).name

    def _next_state(self, device: Device, room: str | None) -> str:
        self._sequence += 1
        state = {
            "boot": self._boot,
            "seq": self._sequence,
            "at": timestamp(device.updated_at),
            "name": device.name,
            "room": room,
            "attributes": device.attributes,
        }
        return orjson.dumps(state).decode()

    def _find(self, device_id: str) -> Device | None:
        """Return the device that this hub publishes under an id. Return None for an unknown id, or for a device from
        MQTT."""
        found = self._home.registry.find_device(device_id)
        return None if found is None or found.metadata.source in self._brokers else found

    def _publish_event(self, device_id: str, name: str, data: Mapping[str, object]) -> None:
        if self._connection is None or self._find(device_id) is None:
            return
        known = self._events.setdefault(device_id, {})
        if name not in known and len(known) < MAX_EVENTS:
            known[name] = None
            self._mark_changed(device_id)
        payload = orjson.dumps({**data, "event_type": name}).decode()
        self._send(Outgoing(self._topics.of("devices", device_id, "event"), payload, qos=1))

    async def _publish_catalogs(self, connection: BrokerConnection) -> None:
        """Publish changes of the scenes and automations, including whether each automation is enabled."""
        if (revision := self._home.revision()) == self._revision:
            return
        self._revision = revision
        scenes, names, states = self._home.scenes(), dict[str, str](), dict[str, str]()
        await in_steps(self._clock, self._collect_automations(names, states))
        if self._catalogs != (scenes, names):
            announced = await asyncio.to_thread(hub_payload, scenes, names, self._topics)
            self._catalogs = scenes, names
            await self._retained.publish(connection, self._topics.config("hub"), announced.decode())
        known, self._automations = self._automations, {*states}
        for topic in known | states.keys():
            await self._retained.publish(connection, topic, states.get(topic, ""))

    def _collect_automations(self, names: dict[str, str], states: dict[str, str]) -> Iterator[None]:
        """Collect the names by id, and the states by topic. A step collects one automation."""
        for id_, name, is_enabled in self._home.automations():
            names[id_] = name
            states[self._topics.of("automations", id_, "state")] = "on" if is_enabled else "off"
            yield

    def _on_message(self, commands: CommandQueues, received: Received) -> None:
        """Process a command, or check a retained message of this hub."""
        if self._is_closing:
            return
        levels = received.topic.split("/")
        if received.topic.startswith(f"{self._topics.prefix}/") or levels[-1] in ("state", "status"):
            self._outrank(received)
            if self._retained.note_received(received):
                self._send(retained(received.topic, ""))
        elif received.is_retained:
            log.warning(
                "the command at %s was ignored because it is retained; publish it without retain",
                received.topic,
            )
        elif len(levels) == 5:
            commands.take(levels[2], unquote(levels[3]), received.payload)

    def _outrank(self, received: Received) -> None:
        """If another client published a newer version of a device's state, continue with a higher `boot`, and replace
        the state. Otherwise, other hubs would ignore each further state."""
        if HUB_STATE.fullmatch(received.topic) is None:
            return
        version = parse_version(decode_text(received.payload, "replace"))
        if version is None or version <= (self._boot, self._sequence):
            return
        self._boot = version[0] + 1
        device = self._find(unquote(received.topic.split("/")[3]))
        # another encoding of the id is a different topic, which must be cleared
        if device is not None and received.topic == self._topics.of("devices", device.id, "state"):
            self._retained.note_published(received.topic, self._next_state(device, self._room_of(device)))

    async def _run_command(self, id_: str, given: HubCommand) -> None:
        if self._home.is_stopping():
            raise Stopping("the hub is stopping; this command was not executed")
        if isinstance(given, Command):
            device = self._find(id_)
            if device is None:
                raise NotFound("device", id_)
            [outcome] = await self._home.send([device], given, "device")
            self._answer_device(id_, str(outcome.status), outcome.message)
        elif given is None:
            self._home.run_scene(id_)
        else:
            await self._home.switch(id_, given)
            self._has_changed.set()

    def _answer(self, target: str, id_: str, error: LaresError) -> None:
        """Publish the error of a device's command at the device's result topic. Log the error of a scene or
        automation."""
        if target == "devices":
            self._answer_device(id_, "busy" if isinstance(error, Busy) else "error", str(error))
        elif not isinstance(error, Stopping):
            log.info("publishing: %s %s: %s", target, id_[:100], error)

    def _answer_device(self, id_: str, status: str, message: str | None) -> None:
        result = {"status": status} if message is None else {"status": status, "message": message}
        self._send(Outgoing(self._topics.of("devices", id_, "result"), orjson.dumps(result).decode(), qos=1))

    def _send(self, message: Outgoing) -> None:
        """Publish in the background if the broker is connected. Otherwise, discard the message."""
        has_room = self._sending < MAX_SENDING and self._sending_bytes + len(message.payload) <= MAX_UNSENT_BYTES
        if self._connection is not None and not self._is_closing and has_room:
            self._sending += 1
            self._sending_bytes += len(message.payload)
            self._tasks.start(self._send_in_line(self._connection, message), f"message to {message.topic}")

    async def _send_in_line(self, connection: BrokerConnection, message: Outgoing) -> None:
        """Send the message after the earlier messages. In a flood, each turn of the loop sends only some of them."""
        try:
            await wait_in_line()
            await connection.publish(message)
        except Unreachable as error:
            log.debug("publishing: %s", error)
        finally:
            self._sending -= 1
            self._sending_bytes -= len(message.payload)
