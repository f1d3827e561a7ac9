"""Sirens."""

from __future__ import annotations

import orjson

from appliance.adapters.mqtt.messages import parse_object
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.platforms.payloads import Update, read_parts, read_word
from appliance.adapters.mqtt.platforms.switch import OnOff
from appliance.home.values import Value


class Siren(OnOff):
    """A siren, with a boolean custom attribute. Setting the siren's tone, volume, or duration also switches the siren
    on."""

    def setup(self) -> None:
        super().setup()
        self.add_reader("state_topic", Siren._parse, "state_value_template", "value_template")
        self.add_offer(
            self.custom_key,
            ("set",),
            lambda self, command: self._write("on" if command.value else "off"),
            type="boolean",
        )
        if tones := self.config.texts("available_tones"):
            self._offer_extra("tone", type="enum", values=list(tones))
        if self._can_vary("support_duration", "duration"):
            self._offer_extra("duration", type="integer", min=0)
        if self._can_vary("support_volume_set", "volume_level"):
            self._offer_extra("volume_level", type="number", min=0, max=1)

    def _can_vary(self, key: str, variable: str) -> bool:
        """Return the flag `key`. If the flag is missing, return whether the command template contains the
        variable."""
        return self.config.flag(key, variable in self.config.text("command_template"))

    def _offer_extra(self, name: str, **schema: Value) -> None:
        key = f"custom.mqtt.{name}"
        self.more_attributes += (key,)
        self.add_offer(key, ("set",), lambda self, command: self._write("on", **{name: command.value}), **schema)

    def _parse(self, text: str) -> Update:
        """Parse a word, or `{"state": …, "tone": …}`."""
        more: dict[str, Value] = {}
        if text.startswith("{"):
            state = parse_object(text, "the state")
            more = {f"custom.mqtt.{key}": state[key] for key in ("tone", "duration", "volume_level") if key in state}
            text = str(state.get("state", ""))
        words = {state: action == "on" for state, action in self.states.items()}
        return read_parts(lambda: more, lambda: read_word(text, words, self.custom_key))

    def _write(self, action: str, **extra: Value) -> Intent:
        """Return the payload for on or off, rendered by the command template, or as JSON with the additional
        values."""
        keys = ("command_template",) if action == "on" else ("command_off_template", "command_template")
        payload, template = self.payload(action), self.config.template(*keys)
        if template is None:
            payload = orjson.dumps({"state": payload, **extra}).decode()
        message = self.publish_with(template, "command_topic", payload, state=payload, **extra)
        shows = {self.custom_key: action == "on"} if "state_topic" in self.config else {}
        return Intent(messages=(message,), shows=shows)
