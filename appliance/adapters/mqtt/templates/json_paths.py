"""Paths to values in a JSON message, for announcers whose messages need no template."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from appliance.adapters.mqtt.templates.template import Template
from appliance.adapters.mqtt.templates.template_limits import MAX_STRING_CHARS, TOO_LONG, TemplateFailed, ValueMissing

JsonPath = tuple[str | int, ...]
"""Keys and list indexes from the outside to the inside, such as `("ENERGY", "Power", 0)`."""

_MISSING = object()


class JsonPaths(Template):
    """The value at the first of these paths that exists in a message, as a template would render it.

    Index 0 of a value that is not a list means the value itself, because some devices send a list only for two or
    more elements.
    """

    def __init__(self, *paths: JsonPath) -> None:
        self._paths = paths

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JsonPaths) and self._paths == other._paths

    def __hash__(self) -> int:
        return hash(self._paths)

    def __repr__(self) -> str:
        return f"JsonPaths{self._paths}"

    def render(self, names: Mapping[str, Any], now: datetime) -> str:
        """Return the text. Raise `ValueMissing` if none of the paths exists in the message."""
        del now
        for path in self._paths:
            if (value := _value_at(names.get("value_json"), path)) is not _MISSING:
                if len(text := str(value)) > MAX_STRING_CHARS:
                    raise TemplateFailed(TOO_LONG)
                return text.strip()
        raise ValueMissing("the message has no such value")


def _value_at(value: Any, path: JsonPath) -> Any:
    for step in path:
        if isinstance(step, int):
            if isinstance(value, list):
                value = value[step] if step < len(value) else _MISSING
            elif step:
                return _MISSING
        else:
            value = value.get(step, _MISSING) if isinstance(value, dict) else _MISSING
        if value is _MISSING:
            return _MISSING
    return value
