"""Messages of a broker: received ones, whose JSON is parsed once, and those to publish."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import orjson
from msgspec import Struct

from appliance.adapters.broken_json import repair_json
from appliance.adapters.mqtt.templates.template import Template
from appliance.adapters.mqtt.topics import is_topic
from appliance.errors import Invalid
from appliance.tables.checks import shown

MAX_MQTT_PAYLOAD_BYTES = 256 * 1024
"""Bytes of a message."""


_OBJECTS = ("{", "[")


MAX_JSON_DEPTH = 32
"""How deeply JSON may be nested."""


def parse_json(payload: bytes | str) -> Any:
    """Return the JSON value; `Invalid` for anything else and beyond `MAX_JSON_DEPTH`.

    A text is the state of a device: what JSON forbids in it is replaced. One bad value does not hide the others.
    """
    try:
        value = orjson.loads(payload)
    except ValueError:
        value = _repaired(payload) if isinstance(payload, str) and payload[:1] in _OBJECTS else None
        if value is None:
            raise Invalid("is not JSON") from None
    text = payload.decode() if isinstance(payload, bytes) else payload
    if text.count("[") + text.count("{") > MAX_JSON_DEPTH and _is_deeper(value, MAX_JSON_DEPTH):
        raise Invalid(f"is JSON nested more than {MAX_JSON_DEPTH} deep")
    return value


def _repaired(text: str) -> Any:
    with contextlib.suppress(ValueError):
        return orjson.loads(repair_json(text.encode(errors="replace")))
    return None


def parse_object(payload: bytes | str, name: str) -> dict[str, Any]:
    """Return the JSON object, as `parse_json`; `Invalid` for other values. `name` is its name in the sentence."""
    value = parse_json(payload)
    if not isinstance(value, dict):
        raise Invalid(f"{name} is not a JSON object")
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether lists and objects are nested deeper than this."""
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return bool(value) if levels == 0 else any(_is_deeper(each, levels - 1) for each in inner)


class Message:
    """A message received at `at`. A retained message may be of any age."""

    def __init__(self, topic: str, payload: bytes, at: datetime, *, is_retained: bool = False) -> None:
        """Raises `Invalid` for a payload that is too large or not text."""
        if len(payload) > MAX_MQTT_PAYLOAD_BYTES:
            raise Invalid(f"a payload is larger than {MAX_MQTT_PAYLOAD_BYTES // 1024} KiB")
        errors = "replace" if payload[:1] in (b"{", b"[") else "strict"  # a name in Latin-1 costs no more than itself
        try:
            # C programs also send the zero byte that ends a text
            self.text = payload.decode("utf-8-sig", errors).rstrip("\0")
        except UnicodeDecodeError:
            raise Invalid("a payload is not text") from None
        self.topic = topic
        self.at = at
        self.is_retained = is_retained
        self._names: dict[str, Any] | None = None

    @property
    def json(self) -> Any:
        """The payload as JSON; `Invalid` if it is not JSON."""
        return parse_json(self.text)

    def rendered(self, template: Template | None) -> str:
        """Return the payload as rendered by the template; without a template, the payload itself. Raises
        `TemplateFailed`."""
        if template is None:
            return self.text
        if self._names is None:  # thousands of entities may read one topic
            self._names = {"value": self.text, "entity_id": "", "name": ""}
            with contextlib.suppress(Invalid):
                self._names["value_json"] = self.json
        return template.render(self._names, self.at)


def outgoing_of(raw: Mapping[str, Any], refused_prefixes: Iterable[str]) -> Outgoing:
    """Return the message of `{topic, payload, retain?, qos?}`. Raises `Invalid`.

    A payload other than text is published as JSON, a missing one as an empty message. Topics below the refused
    prefixes are invalid.
    """
    if unknown := sorted(raw.keys() - {"topic", "payload", "retain", "qos"}):
        raise Invalid(f"'{unknown[0]}' is not a field of a message; it has topic, payload, retain and qos")
    topic, payload = raw.get("topic"), raw.get("payload")
    if not isinstance(topic, str) or not is_topic(topic):
        raise Invalid(f"topic must be a topic without wildcards that does not begin with $, not {shown(topic)}")
    for prefix in refused_prefixes:
        if topic == prefix or topic.startswith(f"{prefix}/"):
            raise Invalid(f"topic must not be below {prefix}/, where hubs and devices announce themselves")
    retain, qos = raw.get("retain", False), raw.get("qos", 0)
    if not isinstance(retain, bool):
        raise Invalid(f"retain must be true or false, not {shown(retain)}")
    if isinstance(qos, bool) or qos not in (0, 1, 2):
        raise Invalid(f"qos must be 0, 1 or 2, not {shown(qos)}")
    text = payload if isinstance(payload, str) else "" if payload is None else orjson.dumps(payload).decode()
    if len(text.encode(errors="replace")) > MAX_MQTT_PAYLOAD_BYTES:
        raise Invalid(f"payload must be no larger than {MAX_MQTT_PAYLOAD_BYTES // 1024} KiB")
    return Outgoing(topic, text, int(qos), retain)


class Outgoing(Struct, frozen=True):
    """A message to publish; `qos` from 0 to 2. A retained message is stored by the broker; an empty retained message
    removes it."""

    topic: str
    payload: str
    qos: int = 0
    retain: bool = False
