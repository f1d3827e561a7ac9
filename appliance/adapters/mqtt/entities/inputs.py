"""Numbers, selections, texts, moments, buttons and scenes: what can be set or pressed by its own name; firmware."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from appliance.adapters.mqtt.entities.entity import (
    Entity,
    Intent,
    Update,
    clamped,
    is_unknown,
    parse_number,
    plain_number,
)
from appliance.adapters.mqtt.payloads import parse_json
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value
from appliance.tables.checks import is_number


class Input(Entity):
    """A text under the object's id; it can be set where there is a command topic."""

    device_class: str | None = ""

    def setup(self) -> None:
        self.read("state_topic", self.parse, "value_template")
        if self.can("command"):
            self.offer(self.custom, ("set",), self.set_value, **self.schema())

    def schema(self) -> dict[str, Value]:
        """The type and range of the values that may be set."""
        return {"type": "string"}

    def parse(self, text: str) -> Update:
        """The value of a message; a text is cut to 1,000 characters."""
        is_null = text == "None" and "value_template" in self.config and text not in self.config.texts("options")
        return {self.custom: None if is_null else text[:1000]}

    def set_value(self, command: Command) -> Intent:
        """The value, through the template if there is one. Raises `Invalid`."""
        return self.intent("command", command.value, {self.custom: command.value})


class SentText(Input):
    """What takes texts: messages to show, codes to send by infrared; a receiver of codes shows the last one."""

    device_class = None

    def set_value(self, command: Command) -> Intent:
        """The text; done when it is sent."""
        return self.intent("command", command.value)


class Number(Input):
    """A number within the announced range, 1 to 100 in steps of 1 unless something else is announced.

    A bound that is no whole number takes the steps away where none are announced. `payload_reset` makes it unknown.
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
        return {self.custom: plain_number(parse_number(text))} if text else {}

    def set_value(self, command: Command) -> Intent:
        value = plain_number(command.value)
        return self.intent("command", value, {self.custom: value}, value=value)


class Select(Input):
    """One of the announced options."""

    def setup(self) -> None:
        if not self.config.texts("options"):
            raise Invalid("has no options")
        super().setup()

    def schema(self) -> dict[str, Value]:
        return {"type": "enum", "values": list(self.config.texts("options"))}

    def parse(self, text: str) -> Update:
        if text in self.config.texts("options"):
            return {self.custom: text[:1000]}
        if text == "" or is_unknown(text):
            return {self.custom: None} if text == "None" else {}
        raise Invalid(f"{text[:40]!r} is none of the announced options")


class Text(Input):
    """A text of the announced lengths, 0 to 255 characters unless they say otherwise."""

    def schema(self) -> dict[str, Value]:
        low, high = self.config.bounds("min", "max", 0, 255)
        return {"type": "string", "min_length": int(low), "max_length": int(high)}

    def set_value(self, command: Command) -> Intent:
        schema, length = self.schema(), len(command.value)
        if not schema["min_length"] <= length <= schema["max_length"]:
            expected = f"{schema['min_length']} to {schema['max_length']}"
            raise Invalid(f"value of {self.custom}: must have {expected} characters, not {length}")
        return super().set_value(command)


_EXAMPLES = {"date": "2026-11-23", "time": "07:30:00", "datetime": "2026-11-23T07:30:00+01:00"}
"""What each component shows and takes."""


class Moment(Input):
    """A date, a time of day, or both; an instant with an offset or in a known `timezone` is shown in UTC."""

    def setup(self) -> None:
        self._component, name = self.announcement.component, self.config.text("timezone")
        self._zone: tzinfo | None = None
        if self._component == "datetime" and name:
            try:
                self._zone = ZoneInfo(name)
            except (OSError, ValueError, LookupError):
                raise Invalid(f"timezone {name[:60]!r} is not known") from None
        super().setup()

    def parse(self, text: str) -> Update:
        return {self.custom: None if text == "None" else self._canonical(text)} if text else {}

    def set_value(self, command: Command) -> Intent:
        return self.intent("command", command.value, {self.custom: self._canonical(command.value)})

    def _canonical(self, text: str) -> str:
        try:
            if self._component == "date":
                return date.fromisoformat(text).isoformat()
            if self._component == "time":
                return time.fromisoformat(text).isoformat()
            found = datetime.fromisoformat(text)
        except ValueError:
            raise Invalid(f"{text[:40]!r} is no {self._component} like {_EXAMPLES[self._component]}") from None
        found = found.replace(tzinfo=self._zone) if found.tzinfo is None else found
        return (found if found.tzinfo is None else found.astimezone(UTC)).isoformat()


class Button(Entity):
    """A button or a scene: nothing to read, one thing to do, which is done when it is sent."""

    def setup(self) -> None:
        is_button = self.announcement.component == "button"
        payload = self.config.text("payload_press", "PRESS") if is_button else self.payload("on")
        if self.can("command"):
            self.offer(self.custom, ("press",), lambda _: self.intent("command", payload))


class UpdateEntity(Entity):
    """Whether there is a newer firmware, `{installed, latest, progress?}` (in percent), and its installation."""

    device_class = ""

    def setup(self) -> None:
        self._versions: dict[str, Value] = {}
        self.read("state_topic", self._parse_installed, "value_template")
        self.read("latest_version_topic", lambda text: self._show(latest=text), "latest_version_template")
        if self.can("command") and (payload := self.config.text("payload_install")):
            self.offer(self.custom, ("install",), lambda _: self.intent("command", payload))

    def _parse_installed(self, text: str) -> Update:
        try:
            state = parse_json(text)
        except Invalid:
            state = text
        if isinstance(state, dict):
            self._note_progress(state)
            return self._show(installed=state.get("installed_version"), latest=state.get("latest_version"))
        return self._show(installed=text)

    def _note_progress(self, state: Mapping[str, Any]) -> None:
        """Note how many percent of an installation are done, which goes with it."""
        done: Any = state.get("update_percentage")
        if is_number(done) and state.get("in_progress", True) is not False:
            self._versions["progress"] = clamped(done)
        elif state.get("in_progress") is True:
            self._versions.setdefault("progress", 0)
        elif "in_progress" in state or "update_percentage" in state:
            self._versions.pop("progress", None)

    def _show(self, **versions: Value) -> Update:
        self._versions |= {
            name: str(version)[:100] for name, version in versions.items() if version not in (None, "", "None")
        }
        return {self.custom: dict(self._versions)} if self._versions else {}
