"""The announced devices of one broker: builds them again when their announcements change."""

from __future__ import annotations

import logging
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping

from appliance.adapters.mqtt.announcements.announcement import Announcement
from appliance.adapters.mqtt.announcements.announcement_store import AnnouncementStore
from appliance.adapters.mqtt.announcements.device_builder import build_devices
from appliance.adapters.mqtt.announcements.device_ids import DeviceSlugs
from appliance.adapters.mqtt.announcements.device_places import MAX_BUILT_DEVICES, DevicePlaces
from appliance.adapters.mqtt.announcements.grouping import MARKER_KINDS, group_announcements, markers_of
from appliance.adapters.mqtt.device import MqttDevice
from appliance.adapters.mqtt.fields import parse_templates
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.refusals import Refusals
from appliance.adapters.mqtt.router import Router
from appliance.home_locale import Locale

MAX_BROKER_DEVICES = 2_000

log = logging.getLogger("adapters")


class AnnouncedDevices:
    """The devices of one broker by id, with their announcements, topics, and faults."""

    def __init__(self, section: str, settings: Mqtt, hub_id: str, locale: Locale) -> None:
        self.devices: dict[str, MqttDevice] = {}
        self.refusals = Refusals()
        self.router = Router(self.refusals)
        self.store = AnnouncementStore(settings, hub_id, self.router, self.refusals)
        self._section = section
        self._locale = locale
        self._slugs = DeviceSlugs()
        self._expected: Mapping[str, str] = {}  # identifiers by the device's slug
        self._built: dict[str, tuple[list[Announcement], list[MqttDevice]]] = {}
        self._cut: set[str] = set()  # slugs of devices that lack parts because of the limit
        self.end_waiting()

    def current(self, device: MqttDevice, entity: Entity) -> tuple[MqttDevice, Entity]:
        """Return the current objects for a device and its entity, because a new announcement may have replaced
        them. Return removed objects unchanged."""
        newest = self.devices.get(device.id, device)
        return newest, entity if newest is device else newest.find(entity.announcement.key) or entity

    def expect(self, known: Mapping[str, str]) -> None:
        """Expect the devices in `known` to be announced again. `known` contains identifiers by device id.

        Expected devices keep their slugs. If there are too many devices, expected devices take precedence, then
        existing devices.
        """
        slugs = {id_.removeprefix(f"{self._section}:"): identifier for id_, identifier in known.items()}
        self._expected = slugs
        self._slugs.reserve({slug: identifier for slug, identifier in slugs.items() if identifier})
        markers = {f"{kind} {each}" for each in slugs.values() if each for kind in MARKER_KINDS}
        markers.update(f"slug {slug.partition(':')[0]}" for slug in slugs)
        self.store.expect(markers, self._device_room)

    @property
    def _device_room(self) -> int:
        """The number of further devices that the broker may announce."""
        expected = {slug.partition(":")[0] for slug in self._expected}
        return max(0, MAX_BROKER_DEVICES - len(self._built.keys() | expected))

    def take_new_units(self) -> list[tuple[MqttDevice, Entity]]:
        """Return the entities whose announced unit has changed since the last call, with their devices. Entities that
        are not built yet are returned after their devices are built."""
        found = []
        for key in sorted(self.store.new_units & self.store.device_ids.keys()):
            device = self.devices.get(self.store.device_ids[key])
            if device is not None and (entity := device.find(key)) is not None:
                found.append((device, entity))
                self.store.new_units.discard(key)
        return found

    def end_waiting(self) -> None:
        """Stop waiting for known devices, so that new devices can take their places."""
        self._expected = {}
        self.store.expect(frozenset(), self._device_room)

    def rebuild(self) -> Generator[None, None, list[MqttDevice]]:
        """Rebuild the devices whose announcements changed, in small steps, and return them.

        The next rebuild handles configurations that arrive meanwhile.
        """
        announcements = self.store.included()
        store, slugs = self.store, self._slugs
        groups, doubles = yield from group_announcements(announcements, slugs, store.device_ids, store.newcomers)
        self.refusals.note_doubles(doubles)
        built: dict[str, tuple[list[Announcement], list[MqttDevice]]] = {}
        rebuilt: list[MqttDevice] = []
        chosen, cut = self._choose_devices(groups), set[str]()
        places = DevicePlaces(self._list_reserved(chosen))
        # Devices that need no further place come first, because they can free places.
        for slug in sorted(chosen, key=lambda each: (each not in self._built, each in self._cut)):
            id_, known = f"{self._section}:{slug}", self._built.get(slug)
            if not places.fits(id_):
                cut.add(slug)
                continue
            may_grow = slug in self._cut and places.room > 0
            if known is None or known[0] != groups[slug] or may_grow or _has_old_unit(known[1]):
                for announcement in groups[slug]:
                    yield from parse_templates([announcement.config, *announcement.availability])
                former = () if known is None else {each.key for each in known[0]}
                devices = yield from build_devices(id_, groups[slug], self.refusals, former, self._locale)
                fitting = places.take(devices, () if known is None else known[1])
                if len(fitting) < len(devices):
                    cut.add(slug)
                _report_renamed_alarms(() if known is None else known[1], fitting)
                rebuilt.extend(fitting)
                known = (groups[slug], fitting)
            elif slug in self._cut:
                cut.add(slug)
            built[slug] = known
            yield
        self._cut = cut
        missing = f"{len(cut)} of {len(chosen)} devices are missing or lack parts"
        sentence = f"with their parts, the devices of the broker exceed {MAX_BUILT_DEVICES}; {missing}"
        self.refusals.note_limit("parts", sentence if cut else None)
        for slug in self._built.keys() - built.keys():
            self.refusals.note_crowded(f"{self._section}:{slug}", None)
            del self._built[slug]  # freeing thousands of devices at once would take long
            yield
        self._built = dict(sorted(built.items()))
        self.devices = {device.id: device for _, devices in built.values() for device in devices}
        yield from self.router.route([*self.devices.values()])
        yield from self._set_device_ids()
        yield from self.store.forget_unused()
        while groups:
            groups.popitem()  # freeing the forgotten announcements of all devices at once would take long
            yield
        moved = yield from self._find_bridges()
        listed = {id(device) for device in rebuilt}
        rebuilt += [device for device in moved if id(device) not in listed]
        return [device for device in rebuilt if self.devices.get(device.id) is device]

    def _choose_devices(self, groups: Collection[str]) -> list[str]:
        """Return the sorted slugs of the devices within the limit. Existing devices take precedence.

        A known device has a reserved place until its announcement arrives.
        """
        if len(groups) <= MAX_BROKER_DEVICES:
            self.refusals.note_limit("devices", None)
            return sorted(groups)
        self.refusals.note_limit(
            "devices", f"the broker announces {len(groups)} devices, but Lares uses only {MAX_BROKER_DEVICES}"
        )
        first = [slug for slug in groups if slug in self._expected or slug in self._built]
        others = [slug for slug in groups if slug not in self._expected and slug not in self._built]
        room = MAX_BROKER_DEVICES - len(first) - len(self._expected.keys() - set(groups))
        return sorted((first + others[: max(room, 0)])[:MAX_BROKER_DEVICES])

    def _list_reserved(self, slugs: Iterable[str]) -> list[str]:
        """Return the ids of the existing devices with these slugs, and of the expected devices, with their parts."""
        existing = [device.id for slug in slugs if slug in self._built for device in self._built[slug][1]]
        return existing + [f"{self._section}:{slug}" for slug in sorted(self._expected)]

    def _set_device_ids(self) -> Iterator[None]:
        ids: dict[str, str] = {}
        is_full, markers = not self.refusals.limits.keys().isdisjoint(("devices", "parts")), set[str]()
        for device in self.devices.values():
            ids |= {entity.announcement.key: device.id for entity in device.entities}
            for entity in device.entities:
                markers.update(markers_of(entity.announcement))
            yield
        self.store.set_devices(ids, markers, 0 if is_full else self._device_room)

    def _find_bridges(self) -> Generator[None, None, list[MqttDevice]]:
        """Set the bridge of each device. Return the devices with a changed bridge."""
        by_identifier: dict[str, str] = {}
        for announcements, devices in self._built.values():
            for identifier in {each for one in announcements for each in one.device.identifiers} if devices else ():
                by_identifier[identifier] = devices[0].id
            yield
        changed: list[MqttDevice] = []
        for device in self.devices.values():
            if device.join(by_identifier.get(device.facts.via_device, "")):
                changed.append(device)
            yield
        return changed


def _has_old_unit(devices: Iterable[MqttDevice]) -> bool:
    """Return whether an entity ignores its values, because its unit changed, and perhaps changed back."""
    return any(entity.has_old_unit for device in devices for entity in device.entities)


def _report_renamed_alarms(former: Iterable[MqttDevice], present: Iterable[MqttDevice]) -> None:
    """Log each alarm that has another attribute than before, for example because an entity with a smaller id has
    taken its attribute."""
    before = {key: attribute for device in former for key, attribute in device.alarms_by_key.items()}
    for device in present if before else ():
        for key, attribute in device.alarms_by_key.items():
            if (old := before.get(key, attribute)) != attribute:
                text = "%s: the sensor of the alarm %s now has the attribute %s; change your automations"
                log.warning(text, device.id, old, attribute)
