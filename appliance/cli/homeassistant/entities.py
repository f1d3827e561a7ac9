"""Maps Home Assistant's entities to devices, attributes, and variables of Lares.

The id of an MQTT device follows from its identifiers (see `adapters/mqtt`). The import finds other devices in the
home by serial number, MAC address, or name. The classes of entities follow Home Assistant's documentation.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from msgspec import Struct

from appliance.adapters.mqtt.announcements.device_ids import DeviceSlugs, slug
from appliance.adapters.mqtt.home_assistant_classes import BINARY_SENSORS, COVERS, SENSORS
from appliance.cli.homeassistant.helper_entities import HELPERS, helper_value
from appliance.cli.homeassistant.installation import Installation
from appliance.cli.homeassistant.known_devices import KnownDevice, KnownDevices, code_of
from appliance.cli.homeassistant.not_translated import ImpossibleState, NotTranslated, TooLarge
from appliance.cli.homeassistant.places import Places
from appliance.cli.homeassistant.registries import HaDevice, HaEntity
from appliance.cli.homeassistant.values import as_mapping, is_template, number, word_of, words
from appliance.home.capabilities import KNOWN_ATTRIBUTES
from appliance.home_locale import Locale
from appliance.lua.text.source import MAX_FILE_BYTES

MAX_GROUPS = 8
"""Maximum nesting of groups."""

MAX_EXPANDED_CHARS, MAX_EXPANDED_CHARS_OF_ALL = MAX_FILE_BYTES, 8 * MAX_FILE_BYTES
"""Maximum length of the Lua code for members of groups, entities of areas, and blocks of schedules, per file and for
all files."""

CHARS_PER_ENTITY = 64
"""The length of a short Lua statement for one entity."""

Z2M = "zigbee2mqtt_"
"""The prefix of Zigbee2MQTT's identifiers. Unique ids of Zigbee2MQTT are `<address>_<object id>_<base topic>`."""

CLASSES: Mapping[str, Mapping[str, str]] = {
    "sensor": {name: each.capability for name, each in SENSORS.items()},
    "binary_sensor": {name: each.capability for name, each in BINARY_SENSORS.items()},
}
"""Capabilities by the entity's domain and class."""

DOMAINS: Mapping[str, str] = {
    **dict.fromkeys(("light", "switch", "fan", "media_player"), "power"),
    "climate": "hvac_mode",
    "lock": "lock",
    "device_tracker": "presence",
}

NAMED_CLASSES: Mapping[str, frozenset[str]] = {
    **{each: frozenset({each}) for each in ("door", "window", "gate", "moisture", "motion", "smoke", "vibration")},
    **{each: frozenset({each}) for each in ("temperature", "humidity", "illuminance", "power", "battery")},
    "garage_door": frozenset({"garage_door", "garage"}),
    "occupancy": frozenset({"occupancy", "presence"}),
}
"""Device classes by the first word of triggers and conditions such as `door.opened`."""

TARGET_KEYS = ("entity_id", "device_id", "area_id", "floor_id", "label_id")
"""Keys of a target. Each key names entities, or the entities of a device, area, floor, or label."""

COMMANDED = frozenset({"light", "switch", "fan", "media_player", "climate", "lock", "cover"})
"""Domains of controllable entities. If a device has several entities of such a domain, each entity after the first
is a separate device in Lares."""

WORDS: Mapping[str, Mapping[str, Any]] = {
    **{each.capability: {"on": each.on, "off": each.off} for each in BINARY_SENSORS.values()},
    "presence": {"home": True, "not_home": False},
    "": {"on": True, "off": False},
}
"""Values in Lares, by attribute and state in Home Assistant. The empty attribute name is for `custom` attributes
of binary sensors."""

ATTRIBUTES: Mapping[tuple[str, str], tuple[str, float]] = {
    ("light", "brightness"): ("brightness", 100 / 255),
    ("light", "color_temp_kelvin"): ("color_temperature", 1),
    ("climate", "current_temperature"): ("temperature", 1),
    ("climate", "temperature"): ("target_temperature", 1),
    ("climate", "current_humidity"): ("humidity", 1),
    ("climate", "hvac_action"): ("hvac_state", 1),
    ("climate", "fan_mode"): ("fan_mode", 1),
    ("climate", "preset_mode"): ("preset_mode", 1),
    ("climate", "swing_mode"): ("swing_mode", 1),
    ("cover", "current_position"): ("cover_position", 1),
    ("cover", "current_tilt_position"): ("cover_tilt", 1),
    ("media_player", "volume_level"): ("volume", 100),
    ("media_player", "is_volume_muted"): ("muted", 1),
    ("media_player", "source"): ("media_source", 1),
    ("media_player", "app_name"): ("media_app", 1),
    ("media_player", "media_title"): ("media_title", 1),
    ("fan", "percentage"): ("custom.mqtt.percentage", 1),
    ("fan", "preset_mode"): ("preset_mode", 1),
}
"""Attributes in Lares by the entity's domain and attribute, with a factor for numbers."""


class Target(Struct, frozen=True):
    """The device attribute that corresponds to an entity's value. `factor` converts Home Assistant's numbers."""

    device_id: str
    attribute: str
    domain: str
    factor: float = 1


class Variable(Struct, frozen=True):
    """The variable that corresponds to a helper of Home Assistant."""

    name: str
    domain: str


class Comparison(Struct, frozen=True):
    """A comparison of one value. `test` is `equals`, `above`, or `below`."""

    target: Target | Variable
    test: str
    value: Any


class Script(Struct, frozen=True, kw_only=True):
    """The counterpart of a script: a scene or, for a script with fields or a response, a function in the module
    with this id."""

    id: str
    fields: tuple[str, ...] = ()
    is_function: bool = False


class Entities:
    """Finds the target of each entity. `missing` contains unknown entities.

    - `locale`: the location in the configuration of Lares.
    - `scripts`, `scenes`: the counterparts by object id.
    - `snapshots`: the ids of scenes that actions create.
    - `timers`: the variable and the offset in seconds of each time that an automation waits for.
    """

    def __init__(
        self, installation: Installation, section: str, known: Mapping[str, KnownDevice], locale: Locale
    ) -> None:
        self.installation = installation
        self.locale = locale
        self.missing: dict[str, None] = {}
        self.timers: dict[str, tuple[Variable, float]] = {}
        self.scripts: dict[str, Script] = {}
        self.scenes: dict[str, str] = {}
        self.snapshots: set[str] = set()
        self._chars_left, self._chars_left_of_all = MAX_EXPANDED_CHARS, MAX_EXPANDED_CHARS_OF_ALL
        self.section = section
        self._places = Places(installation)
        self._slugs = DeviceSlugs()
        helpers = {*installation.entities, *installation.helpers}
        self._helper_names = Counter(each.partition(".")[2] for each in helpers if each.split(".")[0] in HELPERS)
        self._variables: dict[str, str] = {}
        self._used_names: set[str] = set()
        for helper in sorted(installation.helpers):
            self.variable(helper)
        self._known = KnownDevices(known.values())
        self._by_registry_id = {each.id: each for each in installation.entities.values() if each.id}
        self._tasmota = {each.device_id for each in installation.entities.values() if each.platform == "tasmota"}
        self._siblings: defaultdict[tuple[str, str], list[HaEntity]] = defaultdict(list)
        for each in installation.entities.values():
            if each.device_id and (attribute := self._attribute(each)):
                self._siblings[each.device_id, attribute].append(each)

    def begin_file(self) -> None:
        """Begin to count the expanded entities of a new file."""
        self._chars_left_of_all -= MAX_EXPANDED_CHARS - self._chars_left
        self._chars_left = MAX_EXPANDED_CHARS

    def count_expanded(self, entities: int, chars: int = CHARS_PER_ENTITY) -> None:
        """Count this length of Lua code for each entity or block. Raise `TooLarge` if the code exceeds a limit."""
        self._chars_left -= entities * chars
        if self._chars_left < 0:
            raise TooLarge("its groups, areas, and schedules are too long for a file of 1 MiB; shorten them")
        if self._chars_left_of_all < MAX_EXPANDED_CHARS - self._chars_left:
            raise TooLarge("groups, areas, and schedules are too long to repeat in this many files; shorten them")

    def schedule(self, entity_id: str) -> tuple[tuple[str, str, str], ...]:
        """Return the blocks of the schedule. Raise `TooLarge` if there are too many."""
        blocks = self.installation.schedules.get(entity_id, ())
        self.count_expanded(len(blocks))
        return blocks

    def device_id(self, ha_device: HaDevice) -> str | None:
        """Return the Lares id of a device in the registry, or None if the id is unknown."""
        for domain, identifier in ha_device.identifiers:
            if domain == "mqtt":
                return f"{self.section}:{self._slugs.slug_of(identifier)}"
        if ha_device.id in self._tasmota and ha_device.connections:
            return f"{self.section}:{code_of(ha_device.connections[0])}"
        stated = [each for _, each in ha_device.identifiers] + [*ha_device.connections]
        stated += [ha_device.serial] if ha_device.serial else []
        return self._known.find({code_of(each) for each in stated}, ha_device.name)

    def entity(self, name: str) -> HaEntity:
        """Return the entity with this entity id or registry id."""
        return self._by_registry_id.get(name) or self.installation.entities.get(name) or HaEntity(entity_id=name)

    def target(self, entity_id: str, attribute: str | None = None) -> Target | Variable:
        """Return the counterpart of the entity's attribute or, without `attribute`, of its state. Raise
        `NotTranslated` if there is no counterpart."""
        return self.attribute(entity_id, attribute) if attribute else self._state(entity_id)

    def _state(self, entity_id: str) -> Target | Variable:
        domain, _, name = entity_id.partition(".")
        if domain in HELPERS:
            return Variable(self.variable(entity_id), domain)
        if domain == "person":
            for tracker in self.installation.persons.get(entity_id, ()):
                return self.target(tracker)
        entity = self.entity(entity_id)
        device = self.installation.devices.get(entity.device_id or "")
        if device is None and domain not in {*DOMAINS, "cover", "sensor", "binary_sensor"}:
            raise NotTranslated(f"{entity_id} has no counterpart in Lares")
        main = self._main_id(entity, device)
        if main is None:
            self.missing[entity_id] = None
            return Target(f"{self.section}:{name}", self._attribute(entity) or f"custom.mqtt.{name}", domain)
        attribute = self._attribute(entity)
        rank = self._rank(entity, attribute) if attribute else 0
        if not attribute or (rank and domain not in COMMANDED):
            attribute = f"custom.mqtt.{self._object_id(entity, device)}"
        elif rank:
            main = f"{main}:{self._object_id(entity, device)}"
        return Target(main, attribute, domain)

    def attribute(self, entity_id: str, name: str) -> Target:
        """Return the counterpart of the entity's attribute. Raise `NotTranslated` if there is no counterpart."""
        target = self._state(entity_id)
        found = ATTRIBUTES.get((target.domain, name))
        if name in ("battery", "battery_level"):
            found = ("battery", 1)
        if found is None or isinstance(target, Variable):
            raise NotTranslated(f"{name} of {entity_id} has no counterpart in Lares")
        return Target(target.device_id, found[0], target.domain, found[1])

    def compare(self, entity_id: str, state: Any) -> Comparison:
        """Return the equality test of an entity's state."""
        target = self.target(entity_id)
        word = word_of(state)
        if is_template(word):
            raise NotTranslated("the state is a template")
        if isinstance(target, Variable):
            return Comparison(target, "equals", helper_value(target.domain, word))
        if word in ("unavailable", "unknown", "offline"):
            shown = "offline" if word == "offline" else "unavailable"
            return Comparison(Target(target.device_id, "state", target.domain), "equals", shown)
        if target.attribute == "cover_position" and word in ("open", "closed"):
            return Comparison(target, *(("above", 0) if word == "open" else ("equals", 0)))
        if target.domain == "media_player" and word not in ("on", "off"):
            return Comparison(Target(target.device_id, "media_playback", target.domain), "equals", word)
        if target.attribute == "presence" and word not in WORDS["presence"]:
            return Comparison(Target(target.device_id, "custom.mqtt.zone", target.domain), "equals", word)
        key = "" if target.attribute.startswith("custom.") and target.domain == "binary_sensor" else target.attribute
        shown = WORDS.get(key, {}).get(word, number(word))
        known = KNOWN_ATTRIBUTES.get(target.attribute)
        if known is not None and known.values and shown not in known.values:
            raise ImpossibleState(f"{target.attribute} of {target.device_id} never equals {shown}")
        return Comparison(target, "equals", shown)

    def possible(self, tests: Iterable[Callable[[], Comparison]]) -> list[Comparison]:
        """Return the tests without impossible states. Raise `ImpossibleState` if all states are impossible."""
        found, reason = [], None
        for test in tests:
            try:
                found.append(test())
            except ImpossibleState as fault:
                reason = fault
        if reason is not None and not found:
            raise reason
        return found

    def targeted(self, domain: str, target: Any) -> list[str]:
        """Return the entities of a target: named entities, members of groups, and entities by device, area, floor, or
        label.

        Raise `NotTranslated` if the target is a template.
        """
        kinds = {key: words(as_mapping(target).get(key)) for key in TARGET_KEYS}
        if any(is_template(each) for named in kinds.values() for each in named):
            raise NotTranslated("the target is a template")
        found = list(self.members(kinds["entity_id"]))
        for key in TARGET_KEYS[1:]:
            for each in kinds[key]:
                rows = self._places.entities_in(key, each)
                self.count_expanded(len(rows))
                found += sorted(row.entity_id for row in rows if _is_of(row, domain))
        return list(dict.fromkeys(found))

    def members(self, names: Iterable[str], depth: int = 0) -> Iterator[str]:
        """Yield the entities. Replace each group with its members. Raise `TooLarge` if there are too many."""
        for name in names:
            self.count_expanded(1)
            entity_id = self.entity(name).entity_id
            if (group := self.installation.groups.get(entity_id)) and group.members and depth < MAX_GROUPS:
                yield from self.members(group.members, depth + 1)
            else:
                yield entity_id

    def is_any(self, group: str, state: Any) -> bool:
        """Return whether a group has this state (on, off, home, not_home) if any of its members has the state.
        Otherwise, all members must have the state."""
        return (word_of(state) in ("on", "home")) is not self.installation.groups[group].needs_all

    def custom(self, entity_id: str) -> Target:
        """Return the `custom` attribute of an entity without a capability in Lares."""
        entity = self.entity(entity_id)
        device = self.installation.devices.get(entity.device_id or "")
        main = self._main_id(entity, device)
        if main is None:
            self.missing[entity_id] = None
            main = f"{self.section}:{entity_id.partition('.')[2]}"
        return Target(main, f"custom.mqtt.{self._object_id(entity, device)}", entity.domain)

    def variable(self, entity_id: str) -> str:
        """Return the variable's name: the object id. If several helpers have the same object id, the name also
        contains the domain. If the name is already used, add a number."""
        if entity_id not in self._variables:
            domain, _, name = entity_id.partition(".")
            base = slug(f"{domain}.{name}" if self._helper_names[name] > 1 else name)[:60]
            numbered = (f"{base}_{number}" if number > 1 else base for number in count(1))
            self._variables[entity_id] = next(each for each in numbered if each not in self._used_names)
            self._used_names.add(self._variables[entity_id])
        return self._variables[entity_id]

    def _attribute(self, entity: HaEntity) -> str | None:
        """Return the capability for the entity's state, or None."""
        kind = entity.device_class or ""
        if entity.domain == "cover":
            return COVERS.get(kind, "cover_position")
        if entity.domain not in CLASSES:
            return DOMAINS.get(entity.domain)
        return CLASSES[entity.domain].get(kind)

    def _main_id(self, entity: HaEntity, device: HaDevice | None) -> str | None:
        if device is not None:
            return self.device_id(device)
        object_id = entity.entity_id.partition(".")[2]
        name = entity.name or entity.original_name or object_id.replace("_", " ")
        return self._known.find_by_entity(name, object_id)

    def _rank(self, entity: HaEntity, attribute: str) -> int:
        """Return the index of the entity among its device's entities with this capability. The main entity has index
        0."""
        same = self._siblings.get((entity.device_id or "", attribute), [])
        device = self.installation.devices.get(entity.device_id or "")
        order = sorted(same, key=lambda each: (each.original_name is not None, self._object_id(each, device)))
        return order.index(entity) if entity in order else 0

    def _object_id(self, entity: HaEntity, device: HaDevice | None) -> str:
        """Return the object id from the entity's MQTT announcement."""
        text = entity.unique_id or entity.entity_id.partition(".")[2]
        for _, identifier in device.identifiers if device else ():
            prefix = identifier.removeprefix(Z2M)
            if text.startswith((f"{prefix}_", f"{prefix}-")):
                text = text[len(prefix) + 1 :]
                return text.rpartition("_")[0] or text if identifier.startswith(Z2M) else text
        return text


def _is_of(entity: HaEntity, domain: str) -> bool:
    if domain in NAMED_CLASSES:
        return entity.domain in ("binary_sensor", "cover", "sensor") and entity.device_class in NAMED_CLASSES[domain]
    return entity.domain == domain or (domain == "homeassistant" and DOMAINS.get(entity.domain) == "power")
