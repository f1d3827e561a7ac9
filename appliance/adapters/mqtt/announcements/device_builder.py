"""Builds the devices of one announced device: which entity gets which capability, name, or separate device."""

from __future__ import annotations

from collections.abc import Container, Generator, Iterator

from appliance.adapters.mqtt.announcements.announcement import Announcement, DeviceFacts
from appliance.adapters.mqtt.announcements.device_ids import digits_of
from appliance.adapters.mqtt.announcements.grouping import identifier_of
from appliance.adapters.mqtt.component_classes import build_entity
from appliance.adapters.mqtt.device import MqttDevice, order_of
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.event import ActionSensor, EventEntity, TriggerEntity
from appliance.adapters.mqtt.refusals import Refusal, Refusals, reason_of
from appliance.home_locale import ANYWHERE, Locale

MAX_ENTITIES = 256


def build_devices(
    device_id: str,
    announcements: list[Announcement],
    refusals: Refusals,
    former: Container[str] = (),
    locale: Locale = ANYWHERE,
) -> Generator[None, None, list[MqttDevice]]:
    """Build the devices of one announced device, one entity per step. Record unusable entities in `refusals`.

    If there are too many entities, the keys in `former` take precedence.
    """
    ordered = sorted(announcements, key=lambda each: (each.key not in former, each.key))
    entities = yield from _build_entities(ordered, device_id, refusals, locale)
    main = MqttDevice(device_id, _facts(announcements), identifier=identifier_of(announcements))
    devices = [main]
    taken: set[str] = set()
    entities.sort(key=order_of)
    for entity in (each for each in entities if each.is_controlling):
        if any(claim in taken for claim in entity.claims if claim in entity.offers):
            _add_part(devices, entity)
        else:
            taken.update(entity.claims)
            main.add(entity)
        yield
    yield from _add_others(devices, [each for each in entities if not each.is_controlling], taken)
    for device in devices:
        device.complete()
        for entity in device.entities:
            key, problems = entity.announcement.key, entity.config.problems
            if problems and key not in refusals.by_key:
                refusals.note_entity(key, Refusal(device.id, entity.main_attribute, "; ".join([*problems][:3])))
    return [device for device in devices if device.entities]


def _add_part(devices: list[MqttDevice], entity: Entity) -> None:
    """Add a separate device for an entity, as a part of the first device. Avoid duplicate ids."""
    main, announcement = devices[0], entity.announcement
    id_ = f"{main.id}:{announcement.object_id}"
    if any(each.id == id_ for each in devices):
        id_ = f"{id_}_{digits_of(announcement.unique_id or announcement.key)}"
    devices.append(MqttDevice(id_, main.facts, parent_id=main.id, identifier=main.identifier))
    devices[-1].add(entity)


def _add_others(devices: list[MqttDevice], entities: list[Entity], taken: set[str]) -> Iterator[None]:
    """Add entities that do not control a capability. If the name of an entity is in use, rename the entity.

    An entity becomes a separate device if it cannot be renamed or if its other attributes are in use. For example, a
    second siren with a tone becomes a separate device.
    """
    main = devices[0]
    custom = {key for entity in main.entities for key in entity.possible_attributes if key.startswith("custom.")}
    for entity in entities:
        key, is_taken = _unused_key(entity, custom), not taken.isdisjoint(entity.claims)
        if (entity.is_renamed and is_taken) or (not entity.claims and key != entity.custom_key):
            entity.use_custom(key)
        if not taken.isdisjoint(entity.claims) or custom & (entity.possible_attributes - {entity.custom_key}):
            _add_part(devices, entity)
        else:
            taken.update(entity.claims)
            custom.update(each for each in entity.possible_attributes if each.startswith("custom."))
            main.add(entity)
        yield


def _unused_key(entity: Entity, custom: Container[str]) -> str:
    """Return the entity's custom attribute, with a suffix if the name is in `custom`."""
    key, announcement = entity.custom_key, entity.announcement
    if key in custom:
        key = f"{key}_{announcement.component}"
    if key in custom:
        key = f"{key}_{digits_of(announcement.unique_id or announcement.key)}"
    return key


def _build_entities(
    announcements: list[Announcement], device_id: str, refusals: Refusals, locale: Locale
) -> Generator[None, None, list[Entity]]:
    """Build the entities of one device, at most `MAX_ENTITIES`."""
    entities: list[Entity] = []
    refusals.note_crowded(device_id, None)
    for each in announcements:
        if len(entities) >= MAX_ENTITIES:
            total = f"{MAX_ENTITIES} entities: {len(announcements)}"
            refusals.note_crowded(device_id, f"{device_id}: the device has more than {total}")
            break
        try:
            entities.append(build_entity(each, locale))
        except Exception as error:  # no announcement may stop the adapter
            refusals.note_entity(each.key, Refusal(device_id, f"custom.mqtt.{each.object_id}", reason_of(error)))
        yield
    return _without_duplicates(entities)


def _without_duplicates(entities: list[Entity]) -> list[Entity]:
    """Remove triggers and action sensors that repeat the presses of an event entity.

    If several event entities remain, add the entity's id to each event.
    """
    events = [entity for entity in entities if isinstance(entity, EventEntity)]
    actions = {f"{each.readers[0].filter}/action" for each in events}
    kinds = {(each.readers[0].filter, kind) for each in events for kind in each.config.texts("event_types")}
    own = {each.readers[0].filter for each in events if not isinstance(each, ActionSensor)}

    def is_duplicate(entity: Entity) -> bool:
        filter_ = entity.readers[0].filter if entity.readers else ""
        if isinstance(entity, ActionSensor):
            return filter_ in own
        return isinstance(entity, TriggerEntity) and ((filter_, entity.expected) in kinds or filter_ in actions)

    left = [entity for entity in entities if not is_duplicate(entity)]
    several = [entity for entity in left if isinstance(entity, EventEntity)]
    for entity in several if len(several) > 1 else ():
        entity.add_source()
    return left


def _facts(announcements: list[Announcement]) -> DeviceFacts:
    """Return the facts of the announcement with the smallest key. Fill in missing facts from the other
    announcements."""
    ordered = [each.device for each in sorted(announcements, key=lambda each: each.key)]
    filled = {
        name: next((value for facts in ordered if (value := getattr(facts, name))), getattr(ordered[0], name))
        for name in DeviceFacts.__struct_fields__
    }
    return DeviceFacts(**filled)
