"""The router of one broker: maps configurations to devices, and each message to values and events."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from appliance.adapters.mqtt.device import TOO_MANY_ENTITIES, MqttDevice, build_devices
from appliance.adapters.mqtt.discovery import Announcement, announced, parse_config
from appliance.adapters.mqtt.fields import parse_templates
from appliance.adapters.mqtt.grouping import DeviceNames, group_announcements
from appliance.adapters.mqtt.messages import Message, Outgoing
from appliance.adapters.mqtt.platforms.entity import Entity, EntityEvent
from appliance.adapters.mqtt.platforms.payloads import UnknownValue, Update
from appliance.adapters.mqtt.platforms.table import COMPONENTS, build_entity, is_excluded, unsupported
from appliance.adapters.mqtt.refusals import MAX_REPORTED_WORDS, Refusal, reason_of
from appliance.adapters.mqtt.tasmota import discovery as tasmota
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed, ValueMissing
from appliance.errors import Invalid
from appliance.home_locale import ANYWHERE, Locale

MAX_BROKER_DEVICES = 2_000

MAX_TOPICS = 10_000
"""Maximum number of subscribed topics, not including the discovery topics."""

MAX_WILDCARDS = 200
"""Maximum number of subscribed filters with wildcards. Each incoming topic is compared with all these filters."""

MAX_CONFIGS = 60_000
"""Maximum number of stored configurations. Usually the limit of devices is reached earlier."""

MAX_CONFIGS_BYTES = 320 * 1024 * 1024
"""Maximum total memory of the configurations."""

MAX_REFUSED = 1_000
"""Number of recorded faults above which faults at further topics are not recorded, because any client can publish at
any number of topics."""

ENTITY_BYTES, AVAILABILITY_BYTES, JSON_PART_BYTES = 6 * 1024, 500, 100
"""Estimated memory, in bytes, of a small entity, of each availability topic, and of each part of an entity's JSON."""

ORIGIN = "Lares"
"""The `origin` in the announcements of Lares hubs."""

Reader = tuple[str, MqttDevice, Entity]
"""A filter, and a device and entity that read the filter's messages."""


class _DeviceEntity(Struct, frozen=True, gc=False):
    """An entity and its device. Neither refers to this object."""

    device: MqttDevice
    entity: Entity


T = TypeVar("T")


def is_wild(text: str) -> bool:
    return "+" in text or "#" in text


def _matches(levels: Sequence[str], given: Sequence[str]) -> bool:
    """Return whether the levels of a filter match the levels of a topic by the rules of MQTT."""
    for at, level in enumerate(levels):
        if level == "#":
            return True
        if at >= len(given) or level not in ("+", given[at]):
            return False
    return len(levels) == len(given)


class Router:
    """The announcements of one broker, and their devices.

    `refused` maps a topic, a key, or a key with an unknown word to the reason why an announcement or message cannot
    be used. `limits` has a sentence for each exceeded limit.
    """

    def __init__(
        self, section: str, prefix: str, hub_id: str, *, includes_config_entities: bool, locale: Locale = ANYWHERE
    ) -> None:
        self.devices: dict[str, MqttDevice] = {}
        self.refused: dict[str, Refusal] = {}
        self.limits: dict[str, str] = {}
        self._unknown_words: dict[str, set[str]] = {}  # by the entity's key
        self._section = section
        self._names = DeviceNames()
        self._expected: frozenset[str] = frozenset()
        self._prefix = prefix
        self._own = f"lares_{hub_id}_"
        self._includes_config_entities = includes_config_entities
        self._locale = locale
        self._payloads: dict[str, bytes] = {}
        self._announced: dict[str, list[Announcement]] = {}
        self._built: dict[str, tuple[list[Announcement], list[MqttDevice]]] = {}
        self._bytes = 0
        self._doubles: set[str] = set()
        self._device_ids: dict[str, str] = {}
        self._readers: dict[str, list[_DeviceEntity]] = {}  # by filter
        self._wild: list[tuple[str, list[str]]] = []  # filters with wildcards, and their levels

    @property
    def filters(self) -> frozenset[str]:
        """The topics to subscribe to."""
        return frozenset(self._readers)

    def expect(self, known: Mapping[str, str]) -> None:
        """Expect the devices in `known` to be announced again. `known` contains identifiers by device id.

        Expected devices keep their names. If there are too many devices, expected devices take precedence, then
        existing devices.
        """
        names = {id_.removeprefix(f"{self._section}:"): identifier for id_, identifier in known.items()}
        self._expected = frozenset(names)
        self._names.reserve({name: identifier for name, identifier in names.items() if identifier})

    def end_waiting(self) -> None:
        """Stop waiting for known devices, so that new devices can take their places."""
        self._expected = frozenset()

    def is_config(self, topic: str) -> bool:
        """Return whether configurations arrive at this topic."""
        if topic in self._readers:
            return False
        is_home_assistant = topic.startswith(f"{self._prefix}/") and topic.endswith("/config")
        return is_home_assistant or topic.startswith(f"{tasmota.DISCOVERY_PREFIX}/")

    def take_config(self, topic: str, payload: bytes) -> bool:
        """Process a configuration. Return whether the configuration changed anything. Never raises.

        An unreadable configuration is not stored, and does not remove a known device.
        """
        if self._payloads.get(topic, b"") == payload and topic not in self.refused:
            return False
        source, fault = topic, None
        try:
            if topic.startswith(f"{tasmota.DISCOVERY_PREFIX}/"):
                source, found, fault = self._tasmota(topic, payload)
            else:
                found = self._announcements(topic, payload)
        except Exception as error:
            refusal = Refusal(self._device_of(topic), "announcement", reason_of(error))
            return self.refuse_topic(topic, refusal if payload else None)
        former = _memory_of(self._payloads.get(topic, b""), self._announced.get(source, []))
        grows = _memory_of(payload, found) - former
        is_one_more = len(self._payloads) >= MAX_CONFIGS and topic not in self._payloads
        if payload and (is_one_more or (grows > 0 and self._bytes + grows > MAX_CONFIGS_BYTES)):
            memory = f"{MAX_CONFIGS_BYTES // 1024**2} MiB of memory"
            self.limits["configurations"] = (
                f"the broker's configurations exceed {MAX_CONFIGS} entries or {memory}; Lares ignores the rest"
            )
            return False
        self._bytes += grows
        if grows < 0:
            self.limits.pop("configurations", None)
        for key in {each.key for each in self._announced.get(source, ())} - {each.key for each in found}:
            self._forget_refusals(key)
        _put(self._payloads, topic, payload)
        _put(self._announced, source, found)
        self.refuse_topic(topic, Refusal(self._device_of(source), "announcement", fault) if fault else None)
        return True

    def refuse_topic(self, topic: str, refusal: Refusal | None) -> bool:
        """Record why the last message at a topic is unusable. None means that the message is usable. Return whether
        the record changed."""
        former = self.refused.get(topic)
        if former is None and len(self.refused) >= MAX_REFUSED:
            return False
        _put(self.refused, topic, refusal)
        return refusal != former

    def has_config(self, topic: str) -> bool:
        """Return whether the topic's configuration is stored, or recorded as unusable."""
        return topic in self._payloads or topic in self.refused

    def _device_of(self, topic: str) -> str:
        """Return the id of a device that is announced at the topic. If no device is announced at the topic, return
        the topic."""
        known = (self._device_ids.get(each.key) for each in self._announced.get(topic, ()))
        return next((each for each in known if each), topic)

    def forget_configs_except(self, topics: Container[str]) -> Iterator[None]:
        """Forget the configurations of all other topics, one per step, because the broker no longer retains them."""
        for topic in [
            each for each in {*self._payloads, *self.refused} if each not in topics and self.is_config(each)
        ]:
            self.take_config(topic, b"")
            yield

    def list_state_requests(self, requested: set[str], found: list[Outgoing]) -> Iterator[None]:
        """Add the messages that request unretained states to `found`, in steps. Skip the topics in `requested`, and
        add all other topics to `requested`."""
        requested.intersection_update(self._payloads)
        for topic in [each for each in self._payloads if tasmota.is_config(each) and each not in requested]:
            requested.add(topic)
            with suppress(Invalid):
                config = parse_config(self._payloads.get(topic, b"{}"))
                found += [Outgoing(*request) for request in tasmota.state_requests(config)]
            yield

    def rebuild(self, rebuilt: list[MqttDevice]) -> Iterator[None]:
        """Rebuild the devices whose announcements changed, in small steps, and add them to `rebuilt`.

        The next rebuild handles configurations that arrive meanwhile.
        """
        groups: dict[str, list[Announcement]] = {}
        doubles: dict[str, tuple[str, str]] = {}
        announcements = self._included([*self._announced.values()])
        yield from group_announcements(announcements, groups, self._names, self._device_ids, doubles)
        for key in self._doubles - doubles.keys():
            self.refused.pop(key, None)
        for key, (topic, other) in doubles.items():
            reason = f"{other} has the same unique_id and takes precedence"
            self.refused.setdefault(key, Refusal(topic, "announcement", reason))
        self._doubles = {*doubles}
        built: dict[str, tuple[list[Announcement], list[MqttDevice]]] = {}
        for name in self._choose_devices(groups):
            known = self._built.get(name)
            if known is None or known[0] != groups[name]:
                for announcement in groups[name]:
                    yield from parse_templates([announcement.config, *announcement.availability])
                former = () if known is None else {each.key for each in known[0]}
                building = build_devices(self._section, name, groups[name], former, self._locale)
                devices, refused = yield from building
                self._note_refusals(devices, refused)
                rebuilt.extend(devices)
                known = (groups[name], devices)
            built[name] = known
            yield
        self._built = built
        self.devices = {device.id: device for _, devices in built.values() for device in devices}
        yield from self._map_topics()
        yield from self._find_bridges(rebuilt)
        rebuilt[:] = [device for device in rebuilt if self.devices.get(device.id) is device]

    def _choose_devices(self, groups: Collection[str]) -> list[str]:
        """Return the sorted names of the devices within the limit. Existing devices take precedence.

        A known device has a reserved place until its announcement arrives.
        """
        if len(groups) <= MAX_BROKER_DEVICES:
            self.limits.pop("devices", None)
            return sorted(groups)
        self.limits["devices"] = (
            f"the broker announces {len(groups)} devices, but Lares uses only {MAX_BROKER_DEVICES}"
        )
        first = [name for name in groups if name in self._expected or name in self._built]
        others = [name for name in groups if name not in self._expected and name not in self._built]
        room = MAX_BROKER_DEVICES - len(first) - len(self._expected - set(groups))
        return sorted((first + others[: max(room, 0)])[:MAX_BROKER_DEVICES])

    def _find_bridges(self, rebuilt: list[MqttDevice]) -> Iterator[None]:
        """Set the bridge of each device, and add each device with a changed bridge to `rebuilt`."""
        by_identifier: dict[str, str] = {}
        for announcements, devices in self._built.values():
            for identifier in {each for one in announcements for each in one.device.identifiers} if devices else ():
                by_identifier[identifier] = devices[0].id
            yield
        known = {id(device) for device in rebuilt}
        for device in self.devices.values():
            has_changed = device.join(by_identifier.get(device.facts.via_device, ""))
            rebuilt += [device] if has_changed and id(device) not in known else []
            yield

    def readers(self, topic: str) -> Sequence[Reader]:
        """Return the entities that read a topic, each with its filter and its device."""
        filters = [topic] if topic in self._readers else []
        if self._wild:
            given = topic.split("/")
            filters += [each for each, levels in self._wild if each != topic and _matches(levels, given)]
        return [(each, found.device, found.entity) for each in filters for found in self._readers[each]]

    def changes_of(
        self, pattern: str, message: Message, device: MqttDevice, entity: Entity
    ) -> Iterator[Update | EntityEvent | None]:
        """Yield the events and new values for one entity in a message that matches `pattern`.

        All values form one update, because a message is one observation. None means that the availability changed.
        Unreadable parts are added to `refused`.
        """
        if pattern in entity.availability.topics and self._changes_availability(pattern, message, device, entity):
            yield None
        merged: Update | None = None
        for reader in entity.readers if not (entity.reports_events and message.is_retained) else ():
            if reader.topic == pattern:
                try:
                    found = reader.parse(entity, message.rendered(reader.template))
                except ValueMissing:
                    continue
                except Exception as fault:
                    self.note_refusal(device, entity, fault)
                    found = fault.update if isinstance(fault, UnknownValue) else None
                if isinstance(found, EntityEvent):
                    yield found
                elif found is not None:
                    merged = found if merged is None else {**merged, **found}
        if merged is not None:
            yield merged

    def _changes_availability(self, pattern: str, message: Message, device: MqttDevice, entity: Entity) -> bool:
        was_available = entity.availability.is_available
        try:
            entity.availability.take(pattern, message)
        except TemplateFailed as fault:
            self.note_refusal(device, entity, fault)
        return entity.availability.is_available != was_available

    def note_refusal(self, device: MqttDevice, entity: Entity, fault: Exception) -> None:
        """Record why a message could not be read, once per entity and once per unknown word."""
        key = entity.announcement.key
        if not isinstance(fault, UnknownValue):
            self.refused.setdefault(key, Refusal(device.id, entity.label, reason_of(fault)))
        elif len(words := self._unknown_words.setdefault(key, set())) < MAX_REPORTED_WORDS:
            words.add(fault.text)
            refusal = Refusal(device.id, fault.attribute, str(fault))
            self.refused.setdefault(f"{key} {fault.text}", refusal)

    def _forget_refusals(self, key: str) -> None:
        """Forget the faults of an entity, because its announcement changed or was removed."""
        self.refused.pop(key, None)
        for word in self._unknown_words.pop(key, ()):
            self.refused.pop(f"{key} {word}", None)

    def _announcements(self, topic: str, payload: bytes) -> list[Announcement]:
        found = announced(self._prefix, topic, payload)
        if found is None:
            return [replace(each, is_migrating=True) for each in self._announced.get(topic, ())]
        if found and all(each.component not in COMPONENTS for each in found):
            raise Invalid(unsupported(found[0].component))
        former = {each.key: each for each in self._announced.get(topic, ())}
        usable = (self._usable(each, former.get(each.key)) for each in found)
        return [each for each in usable if not self._is_own(each)]

    def _usable(self, announcement: Announcement, former: Announcement | None) -> Announcement:
        """Return the announcement. If the announcement is unusable, return the previous one, so that a known
        entity is not removed."""
        if former is None or former == announcement:
            return announcement
        try:
            build_entity(announcement)
        except Exception as error:
            refusal = Refusal(self._device_of(announcement.source), "announcement", reason_of(error))
            self.refused[announcement.key] = refusal
            return former
        self._forget_refusals(announcement.key)
        return announcement

    def _tasmota(self, topic: str, payload: bytes) -> tuple[str, list[Announcement], str | None]:
        """Return the configuration topic of a Tasmota device, the device's announcements, and the fault of an
        unreadable part."""
        mac, part = tasmota.mac_of(topic)
        payloads = {each: self._payloads.get(topic.removesuffix(part) + each, b"") for each in tasmota.PARTS}
        payloads[part] = payload
        config, sensors = (parse_config(payloads[each]) if payloads[each] else {} for each in tasmota.PARTS)
        fault = tasmota.unreadable_relays(config) if part == "config" else None
        return f"{tasmota.DISCOVERY_PREFIX}/{mac}/config", tasmota.announced(mac, config, sensors), fault

    def _is_own(self, announcement: Announcement) -> bool:
        identifiers = announcement.device.identifiers
        return announcement.origin == ORIGIN and any(each.startswith(self._own) for each in identifiers)

    def _included(self, announced: Iterable[list[Announcement]]) -> Iterator[Announcement]:
        for found in announced:
            for each in found:
                if self._includes_config_entities or not is_excluded(each):
                    yield each

    def _note_refusals(self, devices: Iterable[MqttDevice], refused: Mapping[str, Refusal]) -> None:
        """Record the rejected announcements of newly built devices. Record too many entities as an exceeded limit."""
        for key, refusal in refused.items():
            if refusal.reason.startswith(TOO_MANY_ENTITIES):
                self.limits["entities"] = f"{refusal.device_id}: {refusal.reason}"
            else:
                self.refused[key] = refusal
        for device in devices:
            for entity in device.entities:
                if problems := entity.config.problems:
                    refusal = Refusal(device.id, entity.label, "; ".join([*problems][:3]))
                    self.refused.setdefault(entity.announcement.key, refusal)

    def _map_topics(self) -> Iterator[None]:
        """Map each topic to its readers. Beyond the limits, topics that already have a reader take precedence."""
        readers: dict[str, list[_DeviceEntity]] = {}
        ids: dict[str, str] = {}
        for device in self.devices.values():
            for entity in device.entities:
                ids[entity.announcement.key] = device.id
                reader = _DeviceEntity(device, entity)
                for topic in entity.topics:
                    readers.setdefault(topic, []).append(reader)
            yield
        self._device_ids = ids
        wild = [topic for topic in readers if is_wild(topic)]
        for kind, limit, topics in ("wildcards", MAX_WILDCARDS, wild), ("topics", MAX_TOPICS, readers):
            self.limits.pop(kind, None)
            if len(topics) > limit:
                self.limits[kind] = f"the broker announces {len(topics)} {kind}, but Lares uses only {limit}"
                for topic in sorted(topics, key=lambda topic: topic not in self._readers)[limit:]:
                    del readers[topic]
        self._readers = readers
        self._wild = [(each, each.split("/")) for each in readers if is_wild(each)]


def _memory_of(payload: bytes, found: Iterable[Announcement]) -> int:
    """Return a generous estimate of the memory for a configuration and its announcements.

    Only the texts of templates are included, because their parsed form has a separate limit.
    """
    parts = sum(map(payload.count, (b"{", b"[", b",")))
    entities = sum(ENTITY_BYTES + AVAILABILITY_BYTES * len(each.availability) for each in found)
    return 3 * len(payload) + JSON_PART_BYTES * parts + entities


def _put(table: dict[str, T], key: str, value: T | None) -> None:
    """Set the value, or remove the key if the value is empty."""
    if value:
        table[key] = value
    else:
        table.pop(key, None)
