"""Buttons and switches of Tasmota's native discovery, whose messages are presses."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from appliance.adapters.mqtt.platforms.event import EventEntity, event_of
from appliance.adapters.mqtt.tasmota.announcements import Presses


class TasmotaPress(EventEntity):
    """A button or a switch whose words are presses."""

    def setup(self) -> None:
        self._presses: Presses = self.config.raw["presses"]
        super().setup()
        self.event_names = tuple(dict.fromkeys(self._presses.events.values()))

    def parse(self, text: str) -> Any:
        name = self._presses.events.get(text)
        return None if name is None else replace(event_of(text.lower(), self._presses.data), name=name)
