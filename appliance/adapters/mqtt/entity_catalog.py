"""The catalog of one broker: its configurations, the devices built from them, and the changes in each message."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress

from msgspec import Struct, field
from msgspec.structs import replace

from appliance.adapters.mqtt import tasmota
from appliance.adapters.mqtt.announced_devices import Member, MqttDevice, build
from appliance.adapters.mqtt.announced_fields import preparing
from appliance.adapters.mqtt.announcements import Announcement, announced, config_topic, parse_config
from appliance.adapters.mqtt.device_groups import DeviceNames, grouping
from appliance.adapters.mqtt.entities.entity import Entity, EntityEvent, Update, render
from appliance.adapters.mqtt.entities.table import is_excluded
from appliance.adapters.mqtt.payloads import Message
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed, ValueMissing
from appliance.adapters.mqtt.topics import Filters
from appliance.errors import Invalid, LaresError

MAX_BROKER_DEVICES = 2_000
"""Devices of one broker."""

MAX_TOPICS = 10_000
"""Topics that are subscribed to, beside those of the discovery."""

MAX_CONFIGS = 60_000
"""Configurations that are kept; the devices' own limits are reached before."""

ORIGIN = "Lares"
"""What a hub names as the origin of what it announces."""


class EntityChange(Struct, frozen=True):
    """What a message changes: new values of an entity, or an event at its device."""

    device: MqttDevice
    member: Member
    update: Update = field(default_factory=dict)
    event: EntityEvent | None = None


class CatalogSettings(Struct, frozen=True, kw_only=True):
    """How a broker's announcements are read."""

    section: str
    prefix: str
    hub_id: str
    includes_config_entities: bool


class DeviceCatalog:
    """The announcements of one broker and the devices built from them.

    `refused` has, by topic or key, a sentence on each announcement or message that could not be used.
    """

    def __init__(self, settings: CatalogSettings) -> None:
        self.devices: dict[str, MqttDevice] = {}
        self.names = DeviceNames()
        self.refused: dict[str, str] = {}
        self._settings = settings
        self._payloads: dict[str, bytes] = {}
        self._announced: dict[str, list[Announcement]] = {}
        self._tasmotas: dict[str, dict[str, dict[str, object]]] = {}
        self._built: dict[str, tuple[list[Announcement], list[MqttDevice], dict[str, str]]] = {}
        self._listeners: dict[str, list[tuple[MqttDevice, Member]]] = {}
        self._filters = Filters()

    @property
    def filters(self) -> frozenset[str]:
        """The topics to subscribe to."""
        return frozenset(self._listeners)

    def is_config(self, topic: str) -> bool:
        """Whether a topic is one of the discovery's."""
        is_home_assistant = topic.startswith(f"{self._settings.prefix}/") and topic.endswith("/config")
        return (
            is_home_assistant or topic.startswith(f"{tasmota.DISCOVERY_PREFIX}/")
        ) and topic not in self._listeners

    def take_config(self, topic: str, payload: bytes) -> bool:
        """Process a configuration; whether it changed anything. Never raises."""
        if self._payloads.get(topic, b"") == payload:
            return False
        if payload and topic not in self._payloads and len(self._payloads) >= MAX_CONFIGS:
            self.refused["configurations"] = f"there are more than {MAX_CONFIGS}; the others are left out"
            return False
        if payload:
            self._payloads[topic] = payload
        else:
            del self._payloads[topic]
        self.refused.pop(topic, None)
        try:
            if topic.startswith(f"{tasmota.DISCOVERY_PREFIX}/"):
                self._take_tasmota(topic, payload)
            else:
                self._take_announcements(topic, payload)
        except Invalid as fault:
            self._announced.pop(topic, None)
            self.refused[topic] = str(fault)
        except Exception as error:  # whatever is announced, the adapter goes on
            self._announced.pop(topic, None)
            self.refused[topic] = _unforeseen(error)
        return True

    def forget_configs_but(self, topics: Container[str]) -> None:
        """Forget the configurations of all other topics: the broker retains them no longer."""
        for topic in [each for each in self._payloads if each not in topics]:
            self.take_config(topic, b"")

    def state_requests(self) -> Iterator[tuple[str, str]]:
        """Topics and payloads that request states which are not retained."""
        for parts in self._tasmotas.values():
            with suppress(Invalid):
                yield from tasmota.state_requests(parts["config"]) if parts.get("config") else ()

    def rebuild(self) -> list[MqttDevice]:
        """Rebuild the devices whose announcements changed; the devices that are new or other than before."""
        rebuilt: list[MqttDevice] = []
        for _ in self.rebuilding(rebuilt):
            pass
        return rebuilt

    def rebuilding(self, rebuilt: list[MqttDevice]) -> Iterator[None]:
        """As `rebuild`, one device a step; after the last, `rebuilt` has the devices that are new or changed.

        Configurations that come meanwhile count for the next rebuild.
        """
        groups: dict[str, list[Announcement]] = {}
        yield from grouping([*self._included()], groups, self.names)
        built: dict[str, tuple[list[Announcement], list[MqttDevice], dict[str, str]]] = {}
        for name in sorted(groups)[:MAX_BROKER_DEVICES]:
            known = self._built.get(name)
            if known is None or known[0] != groups[name]:
                for announcement in groups[name]:
                    yield from preparing(announcement.config)
                devices, refused = build(self._settings.section, name, groups[name])
                rebuilt.extend(devices)
                known = (groups[name], devices, refused)
                yield
            built[name] = known
        self._built = built
        self._note_refusals(len(groups))
        self.devices = {device.id: device for _, devices, _ in built.values() for device in devices}
        self._listen()
        rebuilt += self._find_bridges(rebuilt)
        rebuilt[:] = [device for device in rebuilt if self.devices.get(device.id) is device]

    def _find_bridges(self, rebuilt: Sequence[MqttDevice]) -> list[MqttDevice]:
        """Set the bridge of each device; the devices beside the rebuilt ones whose bridge changed."""
        by_identifier: dict[str, str] = {}
        for announcements, devices, _ in self._built.values():
            for identifier in {each for one in announcements for each in one.device.identifiers} if devices else ():
                by_identifier[identifier] = devices[0].id
        known, moved = {id(device) for device in rebuilt}, list[MqttDevice]()
        for device in self.devices.values():
            bridge_id = by_identifier.get(device.facts.via_device, "")
            if not device.parent_id and bridge_id not in (device.id, device.bridge_id):
                device.bridge_id = bridge_id
                moved += [] if id(device) in known else [device]
        return moved

    def changes(self, message: Message) -> Iterator[EntityChange]:
        """The changes that a message makes. What cannot be read is noted in `refused`, once per entity."""
        for pattern, device, member in self.readers(message.topic):
            yield from self.changes_of(pattern, message, device, member)

    def readers(self, topic: str) -> Iterator[tuple[str, MqttDevice, Member]]:
        """The entities that read a topic, each with its device and the filter that it named."""
        for pattern in self._filters.matching(topic):
            for device, member in self._listeners.get(pattern, ()):
                yield pattern, device, member

    def listens(self, topic: str, devices: Container[int]) -> bool:
        """Whether one of these devices, given by identity, reads a topic."""
        patterns = self._filters.matching(topic)
        return any(id(device) in devices for pattern in patterns for device, _ in self._listeners[pattern])

    def changes_of(
        self, pattern: str, message: Message, device: MqttDevice, member: Member
    ) -> Iterator[EntityChange]:
        """The changes that a message makes to one entity that reads its topic under this filter."""
        entity, was_available = member.entity, member.availability.is_available
        try:
            member.availability.take(pattern, message)
        except TemplateFailed as fault:
            self._note(entity, fault)
        if member.availability.is_available != was_available:
            yield EntityChange(device, member)
        if entity.reports_events and message.is_retained:
            return
        for reader in entity.readers:
            if reader.topic == pattern:
                try:
                    found = reader.parse(render(message, reader))
                except ValueMissing:
                    continue
                except Exception as fault:
                    self._note(entity, fault)
                    continue
                if isinstance(found, EntityEvent):
                    yield EntityChange(device, member, event=found)
                elif found is not None:
                    yield EntityChange(device, member, found)

    def _note(self, entity: Entity, fault: Exception) -> None:
        reason = str(fault) if isinstance(fault, LaresError | TemplateFailed) else _unforeseen(fault)
        self.refused.setdefault(entity.announcement.key, f"{entity.announcement.object_id}: {reason}")

    def _take_announcements(self, topic: str, payload: bytes) -> None:
        found = announced(config_topic(self._settings.prefix, topic), topic, payload)
        if found is None:
            self._announced[topic] = [replace(each, is_migrating=True) for each in self._announced.get(topic, ())]
        elif found:
            self._announced[topic] = [each for each in found if not self._is_own(each)]
        else:
            self._announced.pop(topic, None)

    def _take_tasmota(self, topic: str, payload: bytes) -> None:
        mac, part = tasmota.mac_of(topic)
        parts = self._tasmotas.setdefault(mac, {})
        parts[part] = parse_config(payload) if payload else {}
        source = f"{tasmota.DISCOVERY_PREFIX}/{mac}/config"
        self._announced[source] = tasmota.announced(mac, parts.get("config", {}), parts.get("sensors", {}))

    def _is_own(self, announcement: Announcement) -> bool:
        own = f"lares_{self._settings.hub_id}_"
        return announcement.origin == ORIGIN and any(each.startswith(own) for each in announcement.device.identifiers)

    def _included(self) -> Iterator[Announcement]:
        for found in self._announced.values():
            for each in found:
                if self._settings.includes_config_entities or not is_excluded(each):
                    yield each

    def _note_refusals(self, devices: int) -> None:
        for _, _, refused in self._built.values():
            self.refused.update(refused)
        for _, made, _ in self._built.values():
            for device in made:
                for member in device.members:
                    if problems := member.entity.config.problems:
                        self.refused.setdefault(member.entity.announcement.key, "; ".join(problems[:3]))
        if devices > MAX_BROKER_DEVICES:
            self.refused["devices"] = f"{devices} are announced; beyond {MAX_BROKER_DEVICES} they are left out"

    def _listen(self) -> None:
        listeners: dict[str, list[tuple[MqttDevice, Member]]] = {}
        ignored = 0
        for device in self.devices.values():
            for member in device.members:
                for topic in _topics(member):
                    if topic in listeners or len(listeners) < MAX_TOPICS:
                        listeners.setdefault(topic, []).append((device, member))
                    else:
                        ignored += 1
        if ignored:
            self.refused["topics"] = f"more than {MAX_TOPICS} are announced; {ignored} are not listened to"
        self._listeners = listeners
        self._filters = Filters(listeners)


def _unforeseen(error: Exception) -> str:
    """The sentence for an unforeseen exception."""
    return f"cannot be read ({type(error).__name__}: {str(error)[:100]})"


def _topics(member: Member) -> list[str]:
    entity = member.entity
    return list(dict.fromkeys([*(each.topic for each in entity.readers), *member.availability.topics]))


def apply(entity: Entity, update: Update) -> bool:
    """Set new values; whether any of them differs from before."""
    is_new = False
    for key, value in update.items():
        if value is None:
            is_new |= entity.attributes.pop(key, None) is not None
        elif entity.attributes.get(key) != value or isinstance(entity.attributes[key], bool) != isinstance(
            value, bool
        ):
            entity.attributes[key] = value
            is_new = True
    return is_new
