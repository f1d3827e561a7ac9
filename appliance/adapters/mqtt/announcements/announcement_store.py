"""The stored configurations of one broker, and their announcements."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Container, Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TypeVar

from msgspec.structs import replace

from appliance.adapters.mqtt.announcements.announcement import Announcement, parse_config
from appliance.adapters.mqtt.announcements.grouping import markers_of, slug_markers_of
from appliance.adapters.mqtt.announcements.home_assistant_announcements import parse_announcements
from appliance.adapters.mqtt.component_classes import COMPONENTS, build_entity, unsupported
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.messages import Outgoing
from appliance.adapters.mqtt.out.topics import HubTopics
from appliance.adapters.mqtt.refusals import Refusal, Refusals, reason_of
from appliance.adapters.mqtt.router import Router
from appliance.adapters.mqtt.tasmota import announcements as tasmota
from appliance.byte_budget import count_json_values
from appliance.errors import Invalid

MAX_CONFIGS = 60_000
"""Maximum number of stored configurations. Usually the limit of devices is reached earlier."""

MAX_UNUSED_CONFIGS = 2_000
"""Maximum number of configurations that announce no entity of a built device. Their entities can replace other
entities later. A flood of announcements beyond the limits must not stay in memory."""

MAX_CONFIGS_BYTES = 320 * 1024 * 1024
"""Maximum total memory of the configurations."""

ENTITY_BYTES, AVAILABILITY_BYTES, JSON_PART_BYTES = 6 * 1024, 500, 100
"""Estimated memory, in bytes, of a small entity, of each availability topic, and of each part of an entity's JSON."""

MAX_REMOVED_UNITS = 1000
"""Maximum number of removed entities whose unit is remembered."""

T = TypeVar("T")


class AnnouncementStore:
    """The newest configuration at each topic, and the announcements in these configurations.

    `device_ids` maps the key of each announced entity to the id of the entity's device. At most `MAX_UNUSED_CONFIGS`
    configurations of devices that have no room are stored, because a flood would fragment the memory. If the memory
    is full, configurations of expected devices displace other new ones. `new_units` contains the keys of entities
    whose unit has changed, until `AnnouncedDevices.take_new_units` takes them. This includes removed entities that
    are announced again. `newcomers` contains the topics of devices that are not expected, while others are.
    """

    def __init__(self, settings: Mqtt, hub_id: str, router: Router, refusals: Refusals) -> None:
        self.device_ids: Mapping[str, str] = {}
        self.newcomers: dict[str, None] = {}
        self.new_units: set[str] = set()
        self._removed_units: dict[str, str] = {}  # by key, of removed entities
        self._known_markers: set[str] = set()  # of the built devices, and of new devices that have room
        self._expected_markers: AbstractSet[str] = frozenset()
        self._device_room = 0
        self._unused_room = MAX_UNUSED_CONFIGS
        self._prefix = settings.discovery_prefix
        self._own = f"lares_{hub_id}_"
        self._own_catalog = HubTopics(hub_id, self._prefix).config("hub")
        self._router = router
        self._refusals = refusals
        self._includes_config_entities = settings.include_config_entities
        self._payloads: dict[str, bytes] = {}
        self._announced: dict[str, list[Announcement]] = {}
        self._bytes = 0

    def expect(self, markers: AbstractSet[str], device_room: int) -> None:
        """Expect the devices with these identifiers and slugs. `device_room` is the room for further devices."""
        self._expected_markers, self._device_room = markers, device_room
        self.newcomers.clear()

    def set_devices(self, device_ids: Mapping[str, str], known_markers: set[str], device_room: int) -> None:
        """Set `device_ids` after the devices were built, the markers of these devices, and the room for further
        devices."""
        self.device_ids, self._known_markers, self._device_room = device_ids, known_markers, device_room
        removed = [each for each in self._removed_units.items() if each[0] not in device_ids]
        self._removed_units = dict(removed[-MAX_REMOVED_UNITS:])

    def is_config(self, topic: str) -> bool:
        """Return whether configurations arrive at this topic."""
        if topic in self._router:
            return False
        is_home_assistant = topic.startswith(f"{self._prefix}/") and topic.endswith("/config")
        return is_home_assistant or tasmota.is_topic(topic)

    def has_config(self, topic: str) -> bool:
        """Return whether the topic's configuration is stored, or recorded as unusable."""
        return topic in self._payloads or topic in self._refusals.by_key

    def included(self) -> Iterator[Announcement]:
        """Yield the announcements, without entities that the settings exclude."""
        for found in [*self._announced.values()]:
            for each in found:
                if self._includes_config_entities or not each.is_excluded:
                    yield each

    def take_config(self, topic: str, payload: bytes) -> bool:
        """Process a configuration. Return whether the configuration changed anything. Never raises.

        An empty payload removes the configuration. An unreadable configuration is not stored, and does not remove a
        known device.
        """
        if self._payloads.get(topic, b"") == payload and topic not in self._refusals.by_key:
            return False
        source, fault = topic, None
        try:
            if tasmota.is_topic(topic):
                source, found, fault = self._parse_tasmota(topic, payload)
            else:
                found = self._parse_home_assistant(topic, payload)
        except Exception as error:
            refusal = Refusal(self._device_of(topic), "announcement", reason_of(error))
            return self._refusals.note_topic(topic, refusal if payload else None)
        former = self._announced.get(source, [])
        grows = _memory_of(payload, found) - _memory_of(self._payloads.get(topic, b""), former)
        if payload and not self._fits(topic, found, grows):
            return False
        self._bytes += grows
        if grows < 0:
            self._refusals.note_limit("configurations", None)
        gone = {each.key for each in former} - {each.key for each in found}
        for key in gone:
            self._refusals.forget_entity(key)
        self.new_units -= gone
        units = ChainMap({each.key: each.unit for each in former}, self._removed_units)
        removed = gone & self.device_ids.keys()
        self._removed_units |= {each.key: each.unit for each in former if each.key in removed}
        known = [each for each in found if units.get(each.key)]
        self.new_units |= {each.key for each in known if each.unit not in ("", units[each.key])}
        if not payload:
            self.newcomers.pop(topic, None)
        _put(self._payloads, topic, payload)
        _put(self._announced, source, found)
        self._refusals.note_topic(topic, Refusal(self._device_of(source), "announcement", fault) if fault else None)
        return True

    def _fits(self, topic: str, found: Collection[Announcement], grows: int) -> bool:
        """Return whether a configuration that needs `grows` more bytes can be stored. Record an exceeded limit."""
        is_new, markers = topic not in self._payloads, _markers_of(topic, found)
        is_expected = self._is_expected(markers, found)
        if is_new and not (is_expected or self._has_room(markers)):
            return False
        if is_expected:
            self.newcomers.pop(topic, None)
        while is_expected and self.newcomers and not self._has_memory(grows, is_new=is_new):
            self.take_config(self.newcomers.popitem()[0], b"")
        if not self._has_memory(grows, is_new=is_new):
            memory = f"{MAX_CONFIGS_BYTES // 1024**2} MiB of memory"
            self._refusals.note_limit(
                "configurations",
                f"the broker's configurations exceed {MAX_CONFIGS} entries or {memory}; Lares ignores the rest",
            )
            return False
        if is_new and self._expected_markers and not is_expected:
            self.newcomers[topic] = None
        return True

    def _has_memory(self, grows: int, *, is_new: bool) -> bool:
        is_one_more = is_new and len(self._payloads) >= MAX_CONFIGS
        return not is_one_more and (grows <= 0 or self._bytes + grows <= MAX_CONFIGS_BYTES)

    def _is_expected(self, markers: AbstractSet[str], found: Iterable[Announcement]) -> bool:
        expected = self._expected_markers
        if not expected:
            return False
        slugs = (marker for each in found for marker in slug_markers_of(each))
        return not expected.isdisjoint(markers) or not expected.isdisjoint(slugs)

    def _has_room(self, markers: AbstractSet[str]) -> bool:
        """Return whether a configuration with these markers can be stored at a new topic. Only the first
        configuration of a new device takes room for a device."""
        if not self._known_markers.isdisjoint(markers):
            return True
        if markers and self._device_room > 0:
            self._device_room -= 1
            self._known_markers |= markers
            return True
        self._unused_room -= 1
        return self._unused_room >= 0

    def forget_configs_except(self, topics: Container[str]) -> Iterator[None]:
        """Forget the configurations of all other topics, one per step, because the broker no longer retains them."""
        known = {*self._payloads, *self._refusals.by_key}
        yield from self._forget([each for each in known if each not in topics and self.is_config(each)])

    def forget_unused(self) -> Iterator[None]:
        """Forget the configurations beyond `MAX_UNUSED_CONFIGS`. A step handles one configuration."""
        unused: list[str] = []
        for topic in [*self._payloads]:
            if topic in self._payloads and not self._is_used(topic):
                unused.append(topic)
            yield
        self._unused_room = MAX_UNUSED_CONFIGS - len(unused)
        yield from self._forget(unused[MAX_UNUSED_CONFIGS:])

    def _forget(self, topics: Sequence[str]) -> Iterator[None]:
        """Forget the configurations at the topics, one per step. Then release the memory of removed entries."""
        for topic in topics:
            self.take_config(topic, b"")
            yield
        if topics:  # a dictionary shrinks only when it is copied
            self._payloads, self._announced = dict(self._payloads), dict(self._announced)

    def _is_used(self, topic: str) -> bool:
        source = tasmota.config_topic(tasmota.mac_of(topic)[0]) if tasmota.is_topic(topic) else topic
        return any(each.key in self.device_ids for each in self._announced.get(source, ()))

    def list_state_requests(self, requested: set[str]) -> Generator[None, None, list[Outgoing]]:
        """Return the messages that request unretained states, in steps. Skip the topics in `requested`, and add all
        other topics to `requested`."""
        found: list[Outgoing] = []
        requested.intersection_update(self._payloads)
        for topic in [each for each in self._payloads if tasmota.is_config(each) and each not in requested]:
            requested.add(topic)
            with suppress(Invalid):
                config = parse_config(self._payloads.get(topic, b"{}"))
                found += [Outgoing(*request) for request in tasmota.state_requests(config)]
            yield
        return found

    def _device_of(self, topic: str) -> str:
        """Return the id of a device that is announced at the topic. If no device is announced at the topic, return
        the topic."""
        known = (self.device_ids.get(each.key) for each in self._announced.get(topic, ()))
        return next((each for each in known if each), topic)

    def _parse_home_assistant(self, topic: str, payload: bytes) -> list[Announcement]:
        if topic == self._own_catalog:  # with hundreds of scenes and automations, it exceeds the size limit
            return []
        found = parse_announcements(self._prefix, topic, payload)
        if found is None:
            return [replace(each, is_migrating=True) for each in self._announced.get(topic, ())]
        if found and all(each.component not in COMPONENTS for each in found):
            raise Invalid(unsupported(found[0].component))
        former = {each.key: each for each in self._announced.get(topic, ())}
        if not former:
            _require_one_usable(found)
        usable = (self._usable_or_former(each, former.get(each.key)) for each in found)
        return [each for each in usable if not (self._is_own(each) or each.is_automation)]

    def _usable_or_former(self, announcement: Announcement, former: Announcement | None) -> Announcement:
        """Return the announcement. If the announcement is unusable, return the previous one, so that a known
        entity is not removed."""
        if former is None or former == announcement:
            return announcement
        try:
            build_entity(announcement)
        except Exception as error:
            refusal = Refusal(self._device_of(announcement.source), "announcement", reason_of(error))
            self._refusals.note_entity(announcement.key, refusal)
            return former
        self._refusals.forget_entity(announcement.key)
        return announcement

    def _is_own(self, announcement: Announcement) -> bool:
        """Return whether this hub publishes the announcement."""
        identifiers = announcement.device.identifiers
        return announcement.is_from_lares and any(each.startswith(self._own) for each in identifiers)

    def _parse_tasmota(self, topic: str, payload: bytes) -> tuple[str, list[Announcement], str | None]:
        """Return the configuration topic of a Tasmota device, the device's announcements, and the fault of an
        unreadable part."""
        mac, part = tasmota.mac_of(topic)
        payloads = {each: self._payloads.get(topic.removesuffix(part) + each, b"") for each in tasmota.PARTS}
        payloads[part] = payload
        config, sensors = (parse_config(payloads[each]) if payloads[each] else {} for each in tasmota.PARTS)
        fault = tasmota.unreadable_relays(config) if part == "config" else None
        return tasmota.config_topic(mac), tasmota.build_announcements(mac, config, sensors), fault


def _require_one_usable(found: Iterable[Announcement]) -> None:
    """Raise the fault of the first announcement if all announcements are unusable.

    An unusable configuration must leave nothing in memory, and must not take the place of a device.
    """
    fault: Exception | None = None
    for each in found:
        try:
            build_entity(each)
        except Exception as error:
            fault = fault or error
        else:
            return
    if fault is not None:
        try:
            raise fault
        finally:
            del fault  # a variable that refers to a raised exception forms a cycle with the exception's traceback


def _markers_of(topic: str, found: Iterable[Announcement]) -> set[str]:
    """Return the markers of the device. The sensors of a Tasmota device may arrive before its configuration."""
    markers = {marker for each in found for marker in markers_of(each)}
    return markers or ({f"identifier {tasmota.mac_of(topic)[0]}"} if tasmota.is_topic(topic) else markers)


def _memory_of(payload: bytes, found: Iterable[Announcement]) -> int:
    """Return a generous estimate of the memory for a configuration and its announcements.

    Only the texts of templates are included, because their parsed form has a separate limit.
    """
    entities = sum(ENTITY_BYTES + AVAILABILITY_BYTES * len(each.availability) for each in found)
    return 3 * len(payload) + JSON_PART_BYTES * count_json_values(payload) + entities


def _put(table: dict[str, T], key: str, value: T) -> None:
    """Set the value, or remove the key if the value is empty."""
    if value:
        table[key] = value
    else:
        table.pop(key, None)
