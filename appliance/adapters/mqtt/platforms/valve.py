"""Valves."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from appliance.adapters.mqtt.messages import parse_object
from appliance.adapters.mqtt.platforms.cover import has_moved
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.platforms.numbers import Scale, read_number
from appliance.adapters.mqtt.platforms.payloads import Update, read_word
from appliance.home.commands import Command
from appliance.home.values import Value

_ENDS = {"payload_open": "open", "payload_close": "closed"}
"""The state after each payload. A payload of null disables the command."""


class Valve(Entity):
    """A valve with one custom attribute: a percentage if the valve reports positions, otherwise open or closed."""

    def setup(self) -> None:
        self._reports_position = self.config.flag("reports_position")
        self._scale = Scale(self.config.number("position_closed", 0), self.config.number("position_open", 100))
        self._states = {
            self.config.text(f"state_{state}", state): state for state in ("closing", "opening", "closed", "open")
        }
        self.add_reader("state_topic", Valve._parse, "value_template")
        self.need()
        ends: list[Value] = [end for key, end in _ENDS.items() if self.config.raw.get(key, key) is not None]
        schema: dict[str, Value] = {"type": "enum", "values": ends}
        if self._reports_position:
            schema = {"type": "percentage", "min": 0, "max": 100}
        can_set = ("set",) if ends or self._reports_position else ()
        actions = (*can_set, "stop") if "payload_stop" in self.config else can_set
        if actions:
            self.add_offer(self.custom_key, actions, Valve._write, **schema)

    def _parse(self, text: str) -> Update:
        if text.startswith("{"):
            state = parse_object(text, "the state")
            text = str(state.get("position" if self._reports_position else "state", ""))
        if not self._reports_position:
            return read_word(text, self._states, self.custom_key)
        read = partial(self._scale.read, attribute=self.custom_key)
        return {} if text in self._states else read_number(text, self.custom_key, read)

    def _write(self, command: Command) -> Intent:
        if command.action == "stop":
            return self.intent("command", self.config.text("payload_stop"))
        custom, target = self.custom_key, command.value
        if self._reports_position:
            payload = str(self._scale.raw(target))
        else:
            payload = self.payload("open" if target == "open" else "close")
        before, intent = self.attributes.get(custom), self.intent("command", payload, {custom: target})
        return replace(intent, begins=lambda entity: has_moved(entity, custom, before, target))
