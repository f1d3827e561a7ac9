"""One announced device: its entities, attributes, commands, and parts."""

from __future__ import annotations

from collections.abc import Container, Generator, Iterable, Iterator

from msgspec import Struct, field

from appliance.adapters.mqtt.discovery import Announcement, DeviceFacts
from appliance.adapters.mqtt.grouping import digits_of, identifier_of, slug
from appliance.adapters.mqtt.platforms.entity import Entity, Offer
from appliance.adapters.mqtt.platforms.event import ActionSensor, EventEntity, TriggerEntity
from appliance.adapters.mqtt.platforms.sensor import BinarySensor, Sensor
from appliance.adapters.mqtt.platforms.table import build_entity
from appliance.adapters.mqtt.refusals import Refusal, reason_of
from appliance.errors import Invalid
from appliance.home.command_specs import CommandSpec
from appliance.home.model import ALARM_CLASSES, DeviceKind, Info, Observation
from appliance.home.values import Value
from appliance.home_locale import ANYWHERE, Locale

MAX_ENTITIES = 256

MAX_ENTITY_NAME_CHARS = 200

TOO_MANY_ENTITIES = f"the device has more than {MAX_ENTITIES} entities"

DANGERS = {*ALARM_CLASSES, "smoke", "moisture"}
"""Device classes of binary sensors that report a danger."""

_RANKS = ("light", "climate", "cover", "lock", "fan", "valve", "siren", "switch")
"""Order in which components claim a capability."""


class MqttDevice(Struct):
    """One device: its entities, and for each attribute the entity that handles commands to the attribute.

    `parent_id` is the device that contains this device. The device is connected to the bridge `bridge_id`. The id is
    derived from `identifier`.
    """

    id: str
    facts: DeviceFacts
    name: str = ""
    parent_id: str = ""
    bridge_id: str = ""
    identifier: str = ""
    entities: list[Entity] = field(default_factory=list)
    commanded: dict[str, Entity] = field(default_factory=dict)
    specs: tuple[CommandSpec, ...] = ()
    metadata: dict[str, Value] = field(default_factory=dict)

    @property
    def is_available(self) -> bool:
        return any(entity.is_available for entity in self.entities)

    def add(self, entity: Entity) -> None:
        """Add an entity. Commands to an attribute go to the first entity that offers the attribute."""
        self.entities.append(entity)
        for attribute in entity.offers:
            self.commanded.setdefault(attribute, entity)

    @property
    def offers(self) -> dict[str, tuple[Entity, Offer]]:
        """For each attribute that accepts commands: the entity and the entity's offer."""
        return {attribute: (entity, entity.offers[attribute]) for attribute, entity in self.commanded.items()}

    def complete(self) -> None:
        """Sort the entities, and set the name and the commands. Call this method after the last `add`."""
        self.entities.sort(key=_order)
        self.name = _name(self)
        self.specs = tuple(_spec(attribute, offer) for attribute, (_, offer) in sorted(self.offers.items()))

    def join(self, bridge_id: str) -> bool:
        """Set the bridge. Return whether the bridge has changed. A part of another device has no bridge."""
        if self.parent_id or bridge_id in (self.id, self.bridge_id):
            return False
        self.bridge_id = bridge_id
        return True

    def find(self, key: str) -> Entity | None:
        return next((each for each in self.entities if each.announcement.key == key), None)

    @property
    def attributes(self) -> dict[str, Value]:
        """The attributes of all entities. If several entities have the same attribute, the value comes from the
        entity that claims the attribute."""
        shown: dict[str, Value] = {}
        for entity in self.entities:
            shown.update(entity.attributes)
        for entity in self.entities:
            shown.update({key: entity.attributes[key] for key in entity.claims if key in entity.attributes})
        return shown

    def value_of(self, attribute: str) -> Value:
        """Return the value of an attribute, or None."""
        shown = claimed = None
        for entity in self.entities:
            if (value := entity.attributes.get(attribute)) is not None:
                shown = value
                claimed = value if attribute in entity.claims else claimed
        return shown if claimed is None else claimed

    def observation(self, pushed: Iterable[str] = ()) -> Observation:
        """Return a full observation of the device. An unavailable device keeps its last values.

        `pushed` contains the attributes from messages that have just arrived and were not retained.
        """
        facts = self.facts
        return Observation(
            device_id=self.id,
            kind=self.kind,
            attributes=self.attributes,
            vendor_specific=self._metadata(),
            name=self.name or None,
            info=Info(
                manufacturer=facts.manufacturer or None,
                model=facts.model or None,
                firmware=facts.firmware or None,
                serial=facts.serial or None,
                parent_id=self.parent_id or self.bridge_id or None,
                area=facts.area or None,
                device_class=self.device_class,
            ),
            commands=self.specs,
            is_available=self.is_available,
            kept=frozenset().union(*(entity.unconfirmed for entity in self.entities)),
            pushed=frozenset(pushed),
        )

    def _metadata(self) -> dict[str, Value]:
        """Return the vendor's data, which is computed only once."""
        if not self.metadata:
            announcements = [entity.announcement for entity in self.entities]
            topics = list(dict.fromkeys(each.source for each in announcements))
            known: dict[str, Value] = {
                "labels": self.labels, "units": self.units, "alarms": self.alarms, "events": self.events,
                "attributes": self.announced,
            }  # fmt: skip
            self.metadata = {
                "config_topics": topics[:10],
                "origin": announcements[0].origin,
                "identifier": self.identifier,
                **{name: value for name, value in known.items() if value},
            }
        return self.metadata

    @property
    def labels(self) -> dict[str, Value]:
        """The announced names of the entities, by attribute. A name that equals the attribute's name is omitted."""
        found: dict[str, Value] = {}
        for entity in (each for each in self.entities if not each.reports_events):
            words = "".join(each for each in entity.config.text("name") if each.isprintable()).strip()[
                :MAX_ENTITY_NAME_CHARS
            ]
            if words and slug(words) != entity.label.rpartition(".")[2].lower():
                found.setdefault(entity.label, words)
        return found

    @property
    def units(self) -> dict[str, Value]:
        """The units of attributes whose values are plain numbers."""
        units = {
            entity.custom: entity.unit for entity in self.entities if isinstance(entity, Sensor) and not entity.claims
        }
        return {attribute: unit for attribute, unit in units.items() if unit}

    @property
    def alarms(self) -> list[Value]:
        """The attributes of binary sensors that report a danger."""
        sensors = (each for each in self.entities if isinstance(each, BinarySensor))
        return sorted(each.label for each in sensors if each.config.text("device_class") in DANGERS)

    @property
    def announced(self) -> list[Value]:
        """The attributes that the device can report but not accept in a command."""
        keys = {key for each in self.entities if not each.reports_events for key in each.keys}
        return sorted(keys - self.commanded.keys())

    @property
    def events(self) -> list[Value]:
        """The names of all announced events. The result is empty if one of the event entities announces no names."""
        named = [each.event_names for each in self.entities if each.reports_events or each.event_names]
        return sorted({name for names in named for name in names}) if all(named) else []

    @property
    def kind(self) -> DeviceKind:
        """Light if an entity is a light, Switch if the device accepts a command, otherwise Sensor."""
        if any(entity.announcement.component == "light" for entity in self.entities):
            return DeviceKind.LIGHT
        return DeviceKind.SWITCH if self.commanded else DeviceKind.SENSOR

    @property
    def device_class(self) -> str:
        """The device class of the first entity that has a device class."""
        for entity in self.entities:
            if entity.device_class != "":
                return entity.device_class or entity.announcement.component
        words = [entity.config.text("device_class") for entity in self.entities]
        named = [word for word in words if word and word != "battery"] or [word for word in words if word]
        return named[0] if named else self.entities[0].announcement.component


def build_devices(
    section: str,
    name: str,
    announcements: list[Announcement],
    former: Container[str] = (),
    locale: Locale = ANYWHERE,
) -> Generator[None, None, tuple[list[MqttDevice], dict[str, Refusal]]]:
    """Build the devices of one announced device, one entity per step. Return the devices, and the omitted entities by
    key.

    If there are too many entities, the keys in `former` take precedence.
    """
    ordered = sorted(announcements, key=lambda each: (each.key not in former, each.key))
    entities, refused = yield from _entities(ordered, f"{section}:{name}", locale)
    identifier = identifier_of(announcements)
    main = MqttDevice(f"{section}:{name}", _facts(announcements), identifier=identifier)
    devices = [main]
    taken: set[str] = set()
    entities.sort(key=_order)
    for entity in entities:
        if not any(claim in entity.offers for claim in entity.claims):
            continue
        if any(claim in taken for claim in entity.claims if claim in entity.offers):
            _add_part(devices, entity)
        else:
            taken.update(entity.claims)
            main.add(entity)
        yield
    yield from _add_others(devices, entities, taken)
    for device in devices:
        device.complete()
    return [device for device in devices if device.entities], refused


def _add_part(devices: list[MqttDevice], entity: Entity) -> None:
    """Add a separate device for an entity, as a part of the first device. Avoid duplicate ids."""
    main, announcement = devices[0], entity.announcement
    id_ = f"{main.id}:{announcement.object_id}"
    if any(each.id == id_ for each in devices):
        id_ = f"{id_}_{digits_of(announcement.unique_id or announcement.key)}"
    devices.append(MqttDevice(id_, main.facts, parent_id=main.id, identifier=main.identifier))
    devices[-1].add(entity)


def _add_others(devices: list[MqttDevice], entities: list[Entity], taken: set[str]) -> Iterator[None]:
    """Add the entities that do not control a capability. If the name of an entity is in use, rename the entity.

    An entity becomes a separate device if it cannot be renamed or if its other attributes are in use. For example, a
    second siren with a tone becomes a separate device.
    """
    main = devices[0]
    custom = {key for entity in main.entities for key in entity.keys if key.startswith("custom.")}
    for entity in entities:
        if not any(claim in entity.offers for claim in entity.claims):
            if entity.is_renamed and taken & set(entity.claims):
                entity.use_custom()
            if not entity.claims and entity.custom in custom:
                entity.use_custom(f"_{entity.announcement.component}")
            if not entity.claims and entity.custom in custom:
                entity.use_custom(f"_{digits_of(entity.announcement.unique_id or entity.announcement.key)}")
            if taken & set(entity.claims) or custom & (entity.keys - {entity.custom}):
                _add_part(devices, entity)
            else:
                taken.update(entity.claims)
                custom.update(each for each in entity.keys if each.startswith("custom."))
                main.add(entity)
            yield


def _entities(
    announcements: list[Announcement], device_id: str, locale: Locale
) -> Generator[None, None, tuple[list[Entity], dict[str, Refusal]]]:
    entities: list[Entity] = []
    refused: dict[str, Refusal] = {}
    for each in announcements:
        try:
            if len(entities) >= MAX_ENTITIES:
                raise Invalid(f"{TOO_MANY_ENTITIES}: {len(announcements)}")
            entities.append(build_entity(each, locale))
        except Exception as error:  # no announcement may stop the adapter
            refused[each.key] = Refusal(device_id, f"custom.mqtt.{each.object_id}", reason_of(error))
        yield
    return _without_duplicates(entities), refused


def _without_duplicates(entities: list[Entity]) -> list[Entity]:
    """Remove triggers and action sensors that repeat the presses of an event entity.

    If several event entities remain, add the entity's id to each event.
    """
    events = [entity for entity in entities if isinstance(entity, EventEntity)]
    actions = {f"{each.readers[0].topic}/action" for each in events}
    kinds = {(each.readers[0].topic, kind) for each in events for kind in each.config.texts("event_types")}
    own = {each.readers[0].topic for each in events if not isinstance(each, ActionSensor)}

    def is_duplicate(entity: Entity) -> bool:
        topic = entity.readers[0].topic if entity.readers else ""
        if isinstance(entity, ActionSensor):
            return topic in own
        return isinstance(entity, TriggerEntity) and ((topic, entity.expected) in kinds or topic in actions)

    left = [entity for entity in entities if not is_duplicate(entity)]
    several = [entity for entity in left if isinstance(entity, EventEntity)]
    for entity in several if len(several) > 1 else ():
        entity.add_source()
    return left


def _order(entity: Entity) -> tuple[bool, int, str, str]:
    announcement = entity.announcement
    rank = _RANKS.index(announcement.component) if announcement.component in _RANKS else len(_RANKS)
    return not announcement.is_main, rank, announcement.object_id, announcement.key


def _facts(announcements: list[Announcement]) -> DeviceFacts:
    """Return the facts of the announcement with the smallest key. Fill in missing facts from the other
    announcements."""
    ordered = [each.device for each in sorted(announcements, key=lambda each: each.key)]
    filled = {
        name: next((value for facts in ordered if (value := getattr(facts, name))), getattr(ordered[0], name))
        for name in DeviceFacts.__struct_fields__
    }
    return DeviceFacts(**filled)


def _name(device: MqttDevice) -> str:
    if not device.entities:
        return ""
    entity = device.entities[0]
    own = entity.config.text("name")
    if device.parent_id:
        part = own or entity.announcement.object_id
        return part if part.startswith(device.facts.name) else f"{device.facts.name} {part}"
    return device.facts.name or own or entity.announcement.object_id


def _spec(attribute: str, offer: Offer) -> CommandSpec:
    """Convert an offer to a command description of the hub."""
    schema = {key: offer.schema.get(key) for key in ("min", "max", "step", "unit", "type")}
    values = tuple(offer.schema.get("values", ()))
    return CommandSpec(capability=attribute, actions=offer.actions, values=values, **schema)
