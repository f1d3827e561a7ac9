"""Home Assistant's MQTT discovery: converts each retained configuration to announcements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from appliance.adapters.mqtt.announcements.abbreviations import (
    CONFIG_NAMES,
    DEVICE_NAMES,
    ORIGIN_NAMES,
    expand_abbreviations,
)
from appliance.adapters.mqtt.announcements.announcement import (
    MAX_COMPONENTS,
    Announcement,
    DeviceFacts,
    DiscoveryProtocol,
    parse_config,
    text_of,
)
from appliance.errors import Invalid

MAX_BASED_CHARS = 512 * 1024
"""Maximum number of characters that the base topics (`~`) of one configuration may add to the configuration's
topics."""

MAX_TOPIC_ID_CHARS = 200

_OTHER = re.compile(r"[^a-zA-Z0-9_-]")

_INHERITED = (
    "availability", "availability_mode", "availability_template", "availability_topic", "command_topic", "encoding",
    "payload_available", "payload_not_available", "qos", "state_topic",
)  # fmt: skip


def _split_topic(prefix: str, topic: str) -> tuple[str, str, str]:
    """Return the component, node, and object of `<prefix>/<component>/[<node>/]<object>/config`.

    Unlike in Home Assistant, an id may contain any printable character. Raise `Invalid` for other topics.
    """
    levels = topic.removeprefix(f"{prefix}/").split("/")
    if not topic.startswith(f"{prefix}/") or levels[-1] != "config" or len(levels) not in (3, 4):
        raise Invalid("the topic does not belong to a configuration")
    ids = levels[1:-1]
    if not all(0 < len(each) <= MAX_TOPIC_ID_CHARS and each.isprintable() for each in (levels[0], *ids)):
        raise Invalid(f"an id in the topic is empty, longer than {MAX_TOPIC_ID_CHARS} characters, or not printable")
    return levels[0], ids[0] if len(ids) == 2 else "", ids[-1]


def parse_announcements(prefix: str, topic: str, payload: bytes) -> list[Announcement] | None:
    """Return the entities of a configuration. Return None for `migrate_discovery`: the topic will be deleted, but its
    entities will not.

    An empty payload removes the topic's entities, so return an empty list for an empty payload. Raise `Invalid` for
    an unreadable payload.
    """
    component, node_id, name = _split_topic(prefix, topic)
    if not payload:
        return []
    config = expand_abbreviations(parse_config(payload), CONFIG_NAMES)
    _check_bases(config, payload)
    if config.get("migrate_discovery") is True:
        return None
    device, origin = _device(config.get("device")), _origin(config.get("origin"))
    if component == "device":
        return list(_components(topic, f"device/{node_id}/{name}", config, device, origin))
    base = config.get("~")
    key = f"{component}/{node_id}/{name}"
    return [Announcement(protocol=DiscoveryProtocol.HOME_ASSISTANT, key=key, source=topic, component=component,
                         object_id=_object_id(name), config=_based(config, base), device=device, origin=origin,
                         availability=_availability(config, base))]  # fmt: skip


def _check_bases(config: dict[str, Any], payload: bytes) -> None:
    """Raise `Invalid` if the base topics would make the topics too large."""
    components = config.get("components")
    parts = components.values() if isinstance(components, dict) else ()
    bases = [each.get("~") for each in (config, *parts) if isinstance(each, dict)]
    uses = payload.count(b"~") + payload.lower().count(b"\\u007e")
    if uses * max((len(each) for each in bases if isinstance(each, str)), default=0) > MAX_BASED_CHARS:
        raise Invalid(f"the base topic '~' is so long that the topics take more than {MAX_BASED_CHARS // 1024} KiB")


def _components(
    topic: str, key: str, config: dict[str, Any], device: DeviceFacts, origin: str
) -> Iterator[Announcement]:
    components = config.get("components")
    if not isinstance(components, dict):
        raise Invalid("the configuration lacks components")
    if len(components) > MAX_COMPONENTS:
        raise Invalid(f"the configuration has more than {MAX_COMPONENTS} components")
    base = config.get("~")
    shared = _based({key: config[key] for key in _INHERITED if key in config}, base)
    shared_availability = _availability(config, base)
    for name, raw in components.items():
        if not isinstance(raw, dict):
            continue
        own = expand_abbreviations(raw, CONFIG_NAMES)
        platform = own.pop("platform", None)
        if not isinstance(platform, str) or not own:
            continue
        own_base = own.get("~", base)
        availability = _availability(own, own_base) if "availability" in own else shared_availability
        yield Announcement(protocol=DiscoveryProtocol.HOME_ASSISTANT, key=f"{key}/{name}", source=topic,
                           component=platform, object_id=_object_id(str(name)),
                           config=shared | _based(own, own_base), device=device, origin=origin,
                           availability=availability)  # fmt: skip


def _object_id(name: str) -> str:
    """Replace all characters except letters, digits, `_`, and `-` with `_`."""
    return _OTHER.sub("_", name)[:MAX_TOPIC_ID_CHARS] or "_"


def _based(config: Mapping[str, Any], base: Any) -> dict[str, Any]:
    """Replace `~` at the start or end of each topic with the base topic, write classes in lower case, and omit
    `availability`."""
    return {
        key: _converted(key, value, base) if isinstance(value, str) else value
        for key, value in config.items()
        if key != "availability"
    }


def _converted(key: str, value: str, base: Any) -> str:
    if key in ("device_class", "state_class"):
        return "" if value.lower() == "none" else value.lower()
    return _replaced(value, base) if isinstance(base, str) and key.endswith("topic") else value


def _replaced(topic: str, base: str) -> str:
    if topic.startswith("~"):
        return base + topic[1:]
    return topic[:-1] + base if topic.endswith("~") else topic


def _availability(config: Mapping[str, Any], base: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the objects of `availability`, with full names and topics."""
    entries = config.get("availability")
    listed = entries[:50] if isinstance(entries, list) else [entries]
    return tuple(_based(expand_abbreviations(each, CONFIG_NAMES), base) for each in listed if isinstance(each, dict))


def _device(raw: Any) -> DeviceFacts:
    if not isinstance(raw, dict):
        return DeviceFacts()
    facts = expand_abbreviations(raw, DEVICE_NAMES)
    return DeviceFacts(
        identifiers=_texts(facts.get("identifiers")),
        connections=_connections(facts.get("connections")),
        name=text_of(facts.get("name")),
        manufacturer=text_of(facts.get("manufacturer")),
        model=text_of(facts.get("model")) or text_of(facts.get("model_id")),
        firmware=text_of(facts.get("sw_version")),
        serial=text_of(facts.get("serial_number")),
        area=text_of(facts.get("suggested_area")),
        via_device=text_of(facts.get("via_device")),
    )


def _origin(raw: Any) -> str:
    return text_of(expand_abbreviations(raw, ORIGIN_NAMES).get("name")) if isinstance(raw, dict) else ""


def _connections(raw: Any) -> tuple[str, ...]:
    """Return the values of the connections in lower case."""
    if not isinstance(raw, list):
        return ()
    pairs = [each for each in raw[:20] if isinstance(each, list) and len(each) == 2]
    return tuple(value.lower() for each in pairs if (value := text_of(each[1])))


def _texts(raw: Any) -> tuple[str, ...]:
    values = raw[:20] if isinstance(raw, list) else [raw]
    return tuple(text for each in values if (text := text_of(each)))
