"""Sirens."""

from __future__ import annotations

import orjson

from appliance.adapters.mqtt.messages import parse_object
from appliance.adapters.mqtt.platforms.entity import Intent, Update
from appliance.adapters.mqtt.platforms.on_off import OnOff
from appliance.home.values import Value


class Siren(OnOff):
    """A siren: a boolean custom attribute. Setting tone, volume, or duration also switches it on."""

    def setup(self) -> None:
        super().setup()
        self.read("state_topic", self._parse, "state_value_template", "value_template")
        self.offer(self.custom, ("set",), lambda command: self._write("on" if command.value else "off"),
                   type="boolean")  # fmt: skip
        if tones := self.config.texts("available_tones"):
            self._offer_extra("tone", type="enum", values=list(tones))
        if self._can_vary("support_duration", "duration"):
            self._offer_extra("duration", type="integer", min=0)
        if self._can_vary("support_volume_set", "volume_level"):
            self._offer_extra("volume_level", type="number", min=0, max=1)

    def _can_vary(self, key: str, variable: str) -> bool:
        """Return the flag `key`. If it is missing, return whether the command template mentions the variable."""
        return self.config.flag(key, variable in self.config.text("command_template"))

    def _offer_extra(self, name: str, **schema: Value) -> None:
        key = f"custom.mqtt.{name}"
        self.more_keys += (key,)
        self.offer(key, ("set",), lambda command: self._write("on", **{name: command.value}), **schema)

    def _parse(self, text: str) -> Update:
        """Parse a word, or `{"state": …, "tone": …}`."""
        more: dict[str, Value] = {}
        if text.startswith("{"):
            state = parse_object(text, "the state")
            more = {f"custom.mqtt.{key}": state[key] for key in ("tone", "duration", "volume_level") if key in state}
            text = str(state.get("state", ""))
        return {**more, **self.words({state: action == "on" for state, action in self.states.items()})(text)}

    def _write(self, action: str, **extra: Value) -> Intent:
        """Return the payload for on or off: rendered by its template, or as JSON with the additional values."""
        keys = ("command_template",) if action == "on" else ("command_off_template", "command_template")
        payload, template = self.payload(action), self.config.template(*keys)
        if template is None:
            payload = orjson.dumps({"state": payload, **extra}).decode()
        message = self.publish_with(template, "command_topic", payload, state=payload, **extra)
        shows = {self.custom: action == "on"} if "state_topic" in self.config else {}
        return Intent(messages=(message,), shows=shows)
