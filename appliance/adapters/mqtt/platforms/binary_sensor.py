"""Binary sensors."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Entity, Update, is_unknown
from appliance.adapters.mqtt.platforms.published import Fields, PublishedDevice, shown_text
from appliance.errors import Invalid
from appliance.home.classes import BINARY_SENSORS


class BinarySensor(Entity):
    """A binary value that can only be read. If no capability fits, it is a boolean custom attribute."""

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
        self.more_keys = ("presence",) if device_class == "presence" else ()
        self.read("state_topic", self._parse, "value_template")

    def showing(self, is_on: bool | None) -> Update:
        """Return the values for on, off, or unknown."""
        on, off = self._values if self.claims else (True, False)
        value = None if is_on is None else on if is_on else off
        return {self.label: value, **dict.fromkeys(self.more_keys, is_on)}

    def _parse(self, text: str) -> Update:
        if text in (self._on, self._off):
            return self.showing(text == self._on)
        if text == "" or text in self._ignored:
            return {}
        if is_unknown(text):
            return self.showing(None)
        raise Invalid(f"{text[:40]!r} is neither {self._on!r} nor {self._off!r}")


_CLASSES = {
    **{each.capability: (name, str(each.on), str(each.off)) for name, each in reversed(BINARY_SENSORS.items())},
    "presence": ("presence", "True", "False"),
}
"""First device class of each capability, and the texts for on and off in templates."""


def announce(device: PublishedDevice, key: str) -> Fields | None:
    device_class, on, off = _CLASSES.get(key, (None, "True", "False"))
    if device_class is None and not isinstance(device.attributes.get(key), bool):
        return None
    named = {"device_class": device_class} if device_class else {}
    return {"value_template": shown_text(key), **named, "payload_on": on, "payload_off": off}
