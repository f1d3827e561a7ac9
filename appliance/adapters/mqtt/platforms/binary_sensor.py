"""Binary sensors."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.mqtt.platforms.entity import Entity, Update
from appliance.errors import Invalid
from appliance.home.values import Value

_BINARY: Mapping[str, tuple[str, Value, Value]] = {
    "door": ("contact", "open", "closed"),
    "window": ("contact", "open", "closed"),
    "opening": ("contact", "open", "closed"),
    "garage_door": ("contact", "open", "closed"),
    "motion": ("motion", "detected", "clear"),
    "moving": ("motion", "detected", "clear"),
    "occupancy": ("occupancy", "occupied", "unoccupied"),
    "presence": ("occupancy", "occupied", "unoccupied"),
    "smoke": ("smoke", True, False),
    "moisture": ("water_leak", True, False),
}
"""Capability of a binary sensor's device class, and its values for on and off."""


class BinarySensor(Entity):
    """A yes or no that can only be read; without a capability that it comes to it is a boolean custom attribute."""

    device_class = ""
    is_renamed = True

    def setup(self) -> None:
        self._on, self._off = self.payload("on"), self.payload("off")
        self._ignored = self.config.texts("_ignored")
        self.off_delay = self.config.number("off_delay", 0)
        device_class = self.config.text("device_class")
        key, *values = _BINARY.get(device_class, ("", True, False))
        self._values = values
        self.claims = (key,) if key else ()
        self.more_keys = ("presence",) if device_class == "presence" else ()
        self.read("state_topic", self._parse, "value_template")

    def showing(self, is_on: bool | None) -> Update:
        """Return the values for on, for off, or for unknown."""
        on, off = self._values if self.claims else (True, False)
        value = None if is_on is None else on if is_on else off
        return {self.label: value, **dict.fromkeys(self.more_keys, is_on)}

    def _parse(self, text: str) -> Update:
        if text in (self._on, self._off):
            return self.showing(text == self._on)
        if text in ("None", ""):
            return self.showing(None) if text else {}
        if text in self._ignored:
            return {}
        raise Invalid(f"{text[:40]!r} is neither {self._on!r} nor {self._off!r}")
