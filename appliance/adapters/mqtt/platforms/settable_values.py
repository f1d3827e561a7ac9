"""Components with one value that can be set: texts, numbers, options, dates, and messages to display."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, tzinfo
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.platforms.numbers import plain_number, read_number
from appliance.adapters.mqtt.platforms.payloads import UnknownValue, Update, is_unknown, read_word
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value


class SettableValue(Entity):
    """A text. Its attribute is named after the object id. If there is a command topic, the text can be set."""

    device_class: str | None = ""

    def setup(self) -> None:
        self.add_reader("state_topic", type(self).parse, "value_template")
        if self.can("command"):
            self.add_offer(self.custom_key, ("set",), type(self).set_value, **self.schema())

    def schema(self) -> dict[str, Value]:
        """Return the type and range of the accepted values."""
        return {"type": "string"}

    def parse(self, text: str) -> Update:
        """Return the value of a message. Cut a text after 1,000 characters."""
        is_null = text == "None" and "value_template" in self.config and text not in self.config.texts("options")
        return {self.custom_key: None if is_null else text[:1000]}

    def set_value(self, command: Command) -> Intent:
        """Return the value's message, rendered by the template if one is announced. Raise `Invalid`."""
        return self.intent("command", command.value, {self.custom_key: command.value})


class Text(SettableValue):
    """A text. The default length is 0 to 255 characters."""

    def schema(self) -> dict[str, Value]:
        low, high = self.config.bounds("min", "max", 0, 255)
        return {"type": "string", "min_length": int(low), "max_length": int(high)}

    def set_value(self, command: Command) -> Intent:
        schema, length = self.schema(), len(command.value)
        if not schema["min_length"] <= length <= schema["max_length"]:
            expected = f"{schema['min_length']} to {schema['max_length']}"
            raise Invalid(f"value of {self.custom_key}: must have {expected} characters, not {length}")
        return super().set_value(command)


class Number(SettableValue):
    """A number. The default range is 1 to 100 in steps of 1.

    If a bound is a fraction, there is no default step. `payload_reset` makes the value unknown.
    """

    @property
    def units(self) -> Mapping[str, str]:
        return {self.custom_key: self.announcement.unit}

    def schema(self) -> dict[str, Value]:
        low, high = self.config.bounds("min", "max", 1, 100)
        step = self.config.number("step", 0)
        bounds = {"min": plain_number(low), "max": plain_number(high), "step": plain_number(step if step > 0 else 1)}
        if step <= 0 and any(isinstance(each, float) for each in bounds.values()):
            del bounds["step"]
        unit = self.config.text("unit_of_measurement")
        return {"type": "number", **bounds, **({"unit": unit} if unit else {})}

    def parse(self, text: str) -> Update:
        is_reset = text == self.config.text("payload_reset", "None")
        return {self.custom_key: None} if is_reset else read_number(text, self.custom_key, plain_number)

    def set_value(self, command: Command) -> Intent:
        value = plain_number(command.value)
        intent = self.intent("command", value, {self.custom_key: value}, value=value)
        return replace(intent, step=self.schema().get("step"))


class Select(SettableValue):
    """One of the announced options."""

    def setup(self) -> None:
        if not self.config.texts("options"):
            raise Invalid("the entity has no options")
        super().setup()

    def schema(self) -> dict[str, Value]:
        return {"type": "enum", "values": list(self.config.texts("options"))}

    def parse(self, text: str) -> Update:
        words = {"None": None, **{option: option[:1000] for option in self.config.texts("options")}}
        return read_word(text, words, self.custom_key)


_EXAMPLES = {"date": "2026-11-23", "time": "07:30:00", "datetime": "2026-11-23T07:30:00+01:00"}


class Moment(SettableValue):
    """A date, a time of day, or both. A time with an offset or a known `timezone` is converted to UTC."""

    def setup(self) -> None:
        self._component, name = self.announcement.component, self.config.text("timezone")
        self._expected = f"a {self._component} like {_EXAMPLES[self._component]}"
        self._zone: tzinfo | None = None
        if self._component == "datetime" and name:
            try:
                self._zone = ZoneInfo(name)
            except (OSError, ValueError, LookupError):
                raise Invalid(f"the timezone {name[:60]!r} is unknown") from None
        super().setup()

    def parse(self, text: str) -> Update:
        if text == "":
            return {}
        try:
            return {self.custom_key: None if is_unknown(text) else self._canonical(text)}
        except Invalid:
            raise UnknownValue(text, self._expected, self.custom_key) from None

    def set_value(self, command: Command) -> Intent:
        return self.intent("command", command.value, {self.custom_key: self._canonical(command.value)})

    def _canonical(self, text: str) -> str:
        try:
            if self._component == "date":
                return date.fromisoformat(text).isoformat()
            if self._component == "time":
                return time.fromisoformat(text).isoformat()
            found = datetime.fromisoformat(text)
        except ValueError:
            raise Invalid(f"{text[:40]!r} is not {self._expected}") from None
        found = found.replace(tzinfo=self._zone) if found.tzinfo is None else found
        return (found if found.tzinfo is None else found.astimezone(UTC)).isoformat()


class SentText(SettableValue):
    """An entity that accepts texts: messages to display, or infrared codes to send. A receiver of codes reports the
    last code."""

    device_class = None

    def set_value(self, command: Command) -> Intent:
        """Return the message. The command is complete when it is sent."""
        return self.intent("command", command.value)
