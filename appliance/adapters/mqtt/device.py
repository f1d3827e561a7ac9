"""One announced device: its entities, attributes, commands, and parts."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from appliance.adapters.mqtt.announcements.announcement import DeviceFacts, text_of
from appliance.adapters.mqtt.announcements.device_ids import slug
from appliance.adapters.mqtt.home_assistant_classes import DANGERS
from appliance.adapters.mqtt.platforms.binary_sensor import BinarySensor
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.intent import Offer
from appliance.home.command_specs import CommandSpec
from appliance.home.model import DeviceKind, Info, Observation
from appliance.home.values import Value

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
    handlers: dict[str, Entity] = field(default_factory=dict)
    specs: tuple[CommandSpec, ...] = ()
    metadata: dict[str, Value] = field(default_factory=dict)

    @property
    def is_available(self) -> bool:
        return any(entity.is_available for entity in self.entities)

    def add(self, entity: Entity) -> None:
        """Add an entity. Commands to an attribute go to the first entity that offers the attribute."""
        self.entities.append(entity)
        for attribute in entity.offers:
            self.handlers.setdefault(attribute, entity)

    def complete(self) -> None:
        """Sort the entities, and set the name and the commands. Call this method after the last `add`."""
        self.entities.sort(key=order_of)
        self.name = _name(self)
        self.specs = tuple(
            _spec(attribute, entity.offers[attribute]) for attribute, entity in sorted(self.handlers.items())
        )

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
            words = text_of(entity.config.text("name"))
            if words and slug(words) != entity.main_attribute.rpartition(".")[2].lower():
                found.setdefault(entity.main_attribute, words)
        return found

    @property
    def units(self) -> dict[str, Value]:
        """The units of attributes whose values are plain numbers."""
        units = (each for entity in self.entities for each in entity.units.items())
        return {attribute: unit for attribute, unit in units if unit}

    @property
    def alarms(self) -> list[Value]:
        """The attributes of binary sensors that report a danger."""
        return sorted(self.alarms_by_key.values())

    @property
    def alarms_by_key(self) -> dict[str, str]:
        """The attributes of `alarms` by the key of their announcements."""
        sensors = (each for each in self.entities if isinstance(each, BinarySensor))
        alarms = (each for each in sensors if each.config.text("device_class") in DANGERS)
        return {each.announcement.key: each.main_attribute for each in alarms}

    @property
    def announced(self) -> list[Value]:
        """The attributes that the device can report but not accept in a command."""
        keys = {key for each in self.entities if not each.reports_events for key in each.possible_attributes}
        return sorted(keys - self.handlers.keys())

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
        return DeviceKind.SWITCH if self.handlers else DeviceKind.SENSOR

    @property
    def device_class(self) -> str:
        """The device class of the first entity that has a device class."""
        for entity in self.entities:
            if entity.device_class != "":
                return entity.device_class or entity.announcement.component
        words = [entity.config.text("device_class") for entity in self.entities]
        named = [word for word in words if word and word != "battery"] or [word for word in words if word]
        return named[0] if named else self.entities[0].announcement.component


def order_of(entity: Entity) -> tuple[bool, int, str, str]:
    """Return the sort key of an entity: the main entity, then the order in which components claim a capability."""
    announcement = entity.announcement
    rank = _RANKS.index(announcement.component) if announcement.component in _RANKS else len(_RANKS)
    return not announcement.is_main, rank, announcement.object_id, announcement.key


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
