"""Valves."""

from __future__ import annotations

from msgspec.structs import replace

from appliance.adapters.mqtt.messages import parse_object
from appliance.adapters.mqtt.platforms.cover import Scale, has_moved
from appliance.adapters.mqtt.platforms.entity import Entity, Intent, Update, is_unknown, parse_number, unknown_word
from appliance.home.commands import Command
from appliance.home.values import Value

_ENDS = {"payload_open": "open", "payload_close": "closed"}
"""The state after each payload. An announced null removes a payload."""


class Valve(Entity):
    """A valve: a custom attribute, which is a percentage if the valve reports positions, otherwise open or closed."""

    def setup(self) -> None:
        self._reports_position = self.config.flag("reports_position")
        self._scale = Scale(self.config.number("position_closed", 0), self.config.number("position_open", 100))
        self._states = {
            self.config.text(f"state_{state}", state): state for state in ("closing", "opening", "closed", "open")
        }
        self.read("state_topic", self._parse, "value_template")
        self.need()
        ends: list[Value] = [end for key, end in _ENDS.items() if self.config.raw.get(key, key) is not None]
        schema: dict[str, Value] = {"type": "enum", "values": ends}
        if self._reports_position:
            schema = {"type": "percentage", "min": 0, "max": 100}
        can_set = ("set",) if ends or self._reports_position else ()
        actions = (*can_set, "stop") if "payload_stop" in self.config else can_set
        if actions:
            self.offer(self.custom, actions, self._write, **schema)

    def _parse(self, text: str) -> Update:
        if text.startswith("{"):
            state = parse_object(text, "the state")
            text = str(state.get("position" if self._reports_position else "state", ""))
        if text in self._states:
            return {} if self._reports_position else {self.custom: self._states[text]}
        if text == "":
            return {}
        if is_unknown(text):
            return {self.custom: None}
        if not self._reports_position:
            unknown_word(text, self._states, {self.custom: None})
        return {self.custom: self._scale.percent(parse_number(text, self.custom))}

    def _write(self, command: Command) -> Intent:
        if command.action == "stop":
            return self.intent("command", self.config.text("payload_stop"))
        custom, target = self.custom, command.value
        if self._reports_position:
            payload = str(self._scale.raw(target))
        else:
            payload = self.payload("open" if target == "open" else "close")
        before, intent = self.attributes.get(custom), self.intent("command", payload, {custom: target})
        return replace(intent, begins=lambda entity: has_moved(entity, custom, before, target))
