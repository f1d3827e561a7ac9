"""Texts."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Intent
from appliance.adapters.mqtt.platforms.input import Input
from appliance.adapters.mqtt.platforms.published import Fields, PublishedDevice, shown_text
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value


class Text(Input):
    """A text with the announced length, by default 0 to 255 characters."""

    def schema(self) -> dict[str, Value]:
        low, high = self.config.bounds("min", "max", 0, 255)
        return {"type": "string", "min_length": int(low), "max_length": int(high)}

    def set_value(self, command: Command) -> Intent:
        schema, length = self.schema(), len(command.value)
        if not schema["min_length"] <= length <= schema["max_length"]:
            expected = f"{schema['min_length']} to {schema['max_length']}"
            raise Invalid(f"value of {self.custom}: must have {expected} characters, not {length}")
        return super().set_value(command)


def announce(device: PublishedDevice, key: str) -> Fields | None:
    if device.settable(key).get("type") != "string":
        return None
    return {"value_template": shown_text(key), **device.sends("command", key, "{{ value | to_json }}")}
