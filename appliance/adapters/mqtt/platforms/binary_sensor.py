"""Binary sensors."""

from __future__ import annotations

from appliance.adapters.mqtt.home_assistant_classes import BINARY_SENSORS, DANGERS
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.payloads import Update, read_word
from appliance.home.values import Value


class BinarySensor(Entity):
    """A read-only binary value. If no capability fits, the value is a boolean custom attribute."""

    device_class = ""
    is_renamed = True

    def setup(self) -> None:
        self._on, self._off = self.payload("on"), self.payload("off")
        self._ignored = self.config.texts("_ignored")
        self.off_delay = self.config.number("off_delay", 0)
        device_class = self.config.text("device_class")
        found = BINARY_SENSORS.get(device_class)
        self._values = (True, False) if found is None else (found.on, found.off)
        self.claims = () if found is None else (found.capability,)
        self.more_attributes = ("presence",) if device_class == "presence" else ()
        self.add_reader("state_topic", BinarySensor._parse, "value_template")

    def showing(self, is_on: Value) -> Update:
        """Return the values for on, off, or unknown (None)."""
        on, off = self._values if self.claims else (True, False)
        value = None if is_on is None else on if is_on else off
        return {self.main_attribute: value, **dict.fromkeys(self.more_attributes, is_on)}

    def _parse(self, text: str) -> Update:
        """Parse a word. After an unknown word, a sensor that reports a danger shows no safe state."""
        key, words = self.main_attribute, {self._on: True, self._off: self._off == self._on}
        keeps = self.config.text("device_class") not in DANGERS or self.attributes.get(key) is True
        found = read_word(text, words, key, ignored=self._ignored, keeps=keeps)
        return self.showing(found[key]) if found else {}
