"""Binary sensors."""

from __future__ import annotations

from appliance.adapters.mqtt.home_assistant_classes import BINARY_SENSORS
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.payloads import UnknownValue, UnknownWord, Update, one_of, read_word
from appliance.home.values import Value


class BinarySensor(Entity):
    """A read-only binary value. If no capability fits, the value is a boolean custom attribute."""

    device_class = ""
    is_renamed = True
    shared_words: frozenset[str]
    """The words of all sensors with the same topic and template. A sensor ignores the words of the others. For
    example, a receiver of radio codes publishes the codes of all sensors at one topic."""

    def setup(self) -> None:
        self.words = {self.payload("on"): True}
        self.words.setdefault(self.payload("off"), False)
        self._ignored = self.config.texts("_ignored")
        self.shared_words = frozenset[str]()
        self.source = self.config.topic("state_topic"), self.config.text("value_template")
        self.off_delay = self.config.number("off_delay", 0)
        device_class = self.config.text("device_class")
        found = BINARY_SENSORS.get(device_class)
        self._values = (True, False) if found is None else (found.on, found.off)
        self.claims = () if found is None else (found.capability,)
        self.more_attributes = ("presence",) if device_class == "presence" else ()
        if device_class == "presence" and self.announcement.is_from_lares:  # a person, not a sensor in a room
            self.device_class, self.claims, self.more_attributes = "person", ("presence",), ()
            self._values = (True, False)
        self.add_reader("state_topic", BinarySensor._parse, "value_template")

    def showing(self, is_on: Value) -> Update:
        """Return the values for on, off, or unknown (None)."""
        on, off = self._values if self.claims else (True, False)
        value = None if is_on is None else on if is_on else off
        return {self.main_attribute: value, **dict.fromkeys(self.more_attributes, is_on)}

    def _parse(self, text: str) -> Update:
        """Parse a word. A sensor that switches itself off also ignores unknown words, because a word on its topic can
        belong to an unannounced sensor."""
        key = self.main_attribute
        if text in self.shared_words and text not in self.words:
            return {}
        try:
            found = read_word(text, self.words, key, ignored=self._ignored)
        except UnknownValue as fault:
            if self.off_delay > 0:
                raise UnknownWord(fault.text, one_of(self.words), key) from None
            fault.update = self.showing(None)
            raise
        return self.showing(found[key]) if found else {}
