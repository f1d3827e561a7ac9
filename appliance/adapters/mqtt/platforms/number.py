"""Numbers."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Intent, Update, is_unknown, parse_number, plain_number
from appliance.adapters.mqtt.platforms.input import Input
from appliance.adapters.mqtt.platforms.published import Fields, PublishedDevice, shown_text
from appliance.home.commands import Command
from appliance.home.values import Value


class Number(Input):
    """A number within the announced range, by default 1 to 100 in steps of 1.

    If a bound is a fraction, there is no default step. `payload_reset` makes the value unknown.
    """

    def schema(self) -> dict[str, Value]:
        low, high = self.config.bounds("min", "max", 1, 100)
        step = self.config.number("step", 0)
        bounds = {"min": plain_number(low), "max": plain_number(high), "step": plain_number(step if step > 0 else 1)}
        if step <= 0 and any(isinstance(each, float) for each in bounds.values()):
            del bounds["step"]
        unit = self.config.text("unit_of_measurement")
        return {"type": "number", **bounds, **({"unit": unit} if unit else {})}

    def parse(self, text: str) -> Update:
        if text == self.config.text("payload_reset", "None") or is_unknown(text):
            return {self.custom: None}
        return {self.custom: plain_number(parse_number(text, self.custom))} if text else {}

    def set_value(self, command: Command) -> Intent:
        value = plain_number(command.value)
        return self.intent("command", value, {self.custom: value}, value=value)


def announce(device: PublishedDevice, key: str) -> Fields | None:
    schema = device.settable(key)
    if schema.get("type") not in ("number", "integer", "percentage"):
        return None
    bounds = {"min": 0, "max": 100} | {each: schema[each] for each in ("min", "max", "step") if each in schema}
    return {**bounds, "value_template": shown_text(key), **device.sends("command", key, "{{ value }}")}
