"""Selections."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Update, is_unknown
from appliance.adapters.mqtt.platforms.input import Input
from appliance.adapters.mqtt.platforms.published import Fields, PublishedDevice, shown_text
from appliance.errors import Invalid
from appliance.home.values import Value


class Select(Input):
    """One of the announced options."""

    def setup(self) -> None:
        if not self.config.texts("options"):
            raise Invalid("the entity has no options")
        super().setup()

    def schema(self) -> dict[str, Value]:
        return {"type": "enum", "values": list(self.config.texts("options"))}

    def parse(self, text: str) -> Update:
        if text in self.config.texts("options"):
            return {self.custom: text[:1000]}
        if text == "" or is_unknown(text):
            return {self.custom: None} if text == "None" else {}
        raise Invalid(f"{text[:40]!r} is not one of the announced options")


def announce(device: PublishedDevice, key: str) -> Fields | None:
    if not (options := device.settable(key).get("values")):
        return None
    sends = device.sends("command", key, '"{{ value }}"')
    return {"options": list(options), "value_template": shown_text(key), **sends}
