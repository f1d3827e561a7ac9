"""Messages to publish, and received messages, whose JSON is parsed only once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import orjson
from msgspec import Struct

from appliance.adapters.device_json import load_json
from appliance.adapters.mqtt.templates.template import Template
from appliance.adapters.mqtt.topic_filters import is_topic
from appliance.errors import Invalid
from appliance.tables.checks import format_value

MAX_MQTT_PAYLOAD_BYTES = 256 * 1024

_OBJECTS = ("{", "[")

_CONTAINERS = (dict, list)

MAX_JSON_DEPTH = 32

ENTRY_BYTES = 250
"""Memory of a message in bytes, in addition to its topic and payload."""


def parse_payload(payload: bytes | str) -> Any:
    """Parse JSON. Raise `Invalid` for other payloads, and for JSON deeper than `MAX_JSON_DEPTH`.

    A payload of type `str` is a device's state. In a state, parts that JSON forbids are replaced, so that one invalid
    value does not affect the others.
    """
    try:
        is_state = isinstance(payload, str) and payload[:1] in _OBJECTS
        value = load_json(payload) if is_state else orjson.loads(payload)
    except ValueError:
        raise Invalid("the payload is not JSON") from None
    text = payload.decode() if isinstance(payload, bytes) else payload
    if text.count("[") + text.count("{") > MAX_JSON_DEPTH and _is_deeper(value, MAX_JSON_DEPTH):
        raise Invalid(f"the JSON is nested more than {MAX_JSON_DEPTH} levels deep")
    return value


def parse_object(payload: bytes | str, name: str) -> dict[str, Any]:
    """Parse a JSON object. Raise `Invalid` for other values. `name` is the subject of the error message."""
    value = parse_payload(payload)
    if not isinstance(value, dict):
        raise Invalid(f"{name} is not a JSON object")
    return value


def decode_text(payload: bytes, errors: str) -> str:
    """Decode a payload. Remove a byte order mark, and the terminating zero byte that programs in C send."""
    return payload.decode("utf-8-sig", errors).rstrip("\0")


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether JSON has more than `levels` levels. Checking level by level is six times faster than
    recursion."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [part for parts in inner for part in parts if part.__class__ in _CONTAINERS]
    return bool(level)


class Received(Struct, frozen=True, gc=False):
    """A received message before decoding and checks."""

    topic: str
    payload: bytes
    is_retained: bool

    @property
    def size(self) -> int:
        """Approximate memory in bytes."""
        return len(self.payload) + 2 * len(self.topic) + ENTRY_BYTES


class Message:
    """A received message. `at` is the message's arrival time. The content of a retained message may be much older."""

    def __init__(self, topic: str, payload: bytes, at: datetime, *, is_retained: bool = False) -> None:
        """Raise `Invalid` if the payload is too large or not text."""
        if len(payload) > MAX_MQTT_PAYLOAD_BYTES:
            raise Invalid(f"the payload is larger than {MAX_MQTT_PAYLOAD_BYTES // 1024} KiB")
        # a single name in Latin-1 must not make the whole JSON unreadable
        errors = "replace" if payload[:1] in (b"{", b"[") else "strict"
        try:
            self.text = decode_text(payload, errors)
        except UnicodeDecodeError:
            raise Invalid("the payload is not text") from None
        self.topic = topic
        self.at = at
        self.is_retained = is_retained
        self._names: dict[str, Any] | None = None

    @property
    def json(self) -> Any:
        """The payload as JSON. Raises `Invalid`."""
        return parse_payload(self.text)

    def rendered(self, template: Template | None) -> str:
        """Return the payload as rendered by the template, or the payload itself if there is no template. Raise
        `TemplateFailed`."""
        if template is None:
            return self.text
        if self._names is None:  # thousands of entities may read one topic
            self._names = {"value": self.text, "entity_id": "", "name": ""}
            with contextlib.suppress(Invalid):
                self._names["value_json"] = self.json
        return template.render(self._names, self.at)


def outgoing_of(raw: Mapping[str, Any], refused_prefixes: Iterable[str]) -> Outgoing:
    """Parse `{topic, payload, retain?, qos?}`. Raise `Invalid`.

    A payload other than text is published as JSON. Topics below the refused prefixes are invalid.
    """
    if unknown := sorted(raw.keys() - {"topic", "payload", "retain", "qos"}):
        raise Invalid(f"'{unknown[0]}' is not a field of a message; the fields are topic, payload, retain, and qos")
    topic, payload = raw.get("topic"), raw.get("payload")
    if not isinstance(topic, str) or not is_topic(topic):
        raise Invalid(
            f"topic must be a text that has no wildcards and does not begin with $, not {format_value(topic)}"
        )
    for prefix in refused_prefixes:
        if topic == prefix or topic.startswith(f"{prefix}/"):
            raise Invalid(f"topic must not be below {prefix}/, which is reserved for announcements")
    retain, qos = raw.get("retain", False), raw.get("qos", 0)
    if not isinstance(retain, bool):
        raise Invalid(f"retain must be true or false, not {format_value(retain)}")
    if isinstance(qos, bool) or qos not in (0, 1, 2):
        raise Invalid(f"qos must be 0, 1 or 2, not {format_value(qos)}")
    if payload is None:
        raise Invalid('payload is missing; use "" for an empty message, which clears a retained message')
    text = payload if isinstance(payload, str) else orjson.dumps(payload).decode()
    if len(text.encode(errors="replace")) > MAX_MQTT_PAYLOAD_BYTES:
        raise Invalid(f"payload must be no larger than {MAX_MQTT_PAYLOAD_BYTES // 1024} KiB")
    return Outgoing(topic, text, int(qos), retain)


class Outgoing(Struct, frozen=True):
    """A message to publish, with a `qos` from 0 to 2. The broker stores a retained message. An empty retained message
    deletes the stored message."""

    topic: str
    payload: str
    qos: int = 0
    retain: bool = False


def retained(topic: str, payload: str) -> Outgoing:
    """Return a retained message. A retained message with an empty payload deletes the previous one from the
    broker."""
    return Outgoing(topic, payload, qos=1, retain=True)
