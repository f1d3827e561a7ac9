"""Presses of Tasmota's native discovery."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from appliance.adapters.mqtt.platforms.event import EventEntity, event_of


class TasmotaPress(EventEntity):
    """A button or a switch whose words are presses."""

    def setup(self) -> None:
        self._events: Mapping[str, str] = self.config.raw["events"]
        super().setup()
        self.event_names = tuple(dict.fromkeys(self._events.values()))

    def _parse(self, text: str) -> Any:
        name = self._events.get(text)
        return None if name is None else replace(event_of(text.lower(), self.config.raw["data"]), name=name)
