"""Alarm panels."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.mqtt.platforms.entity import Entity, shows_one_of
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.platforms.lock import code_of
from appliance.adapters.mqtt.platforms.payloads import WordParser
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value

_ALARM_MODES: Mapping[str, str] = {
    "armed_home": "arm_home",
    "armed_away": "arm_away",
    "armed_night": "arm_night",
    "armed_vacation": "arm_vacation",
    "armed_custom_bypass": "arm_custom_bypass",
    "triggered": "trigger",
}
"""The words that set each mode of an alarm panel."""

_ALARM_STATES = ("disarmed", *_ALARM_MODES, "arming", "disarming", "pending")


class AlarmPanel(Entity):
    """An alarm panel. The panel's custom attribute is the mode, and accepts the supported modes (by default, all
    modes)."""

    def setup(self) -> None:
        self.need()
        supported = self.config.texts("supported_features", tuple(_ALARM_MODES.values()))
        modes: list[Value] = [mode for mode, feature in _ALARM_MODES.items() if feature in supported]
        parse = WordParser({state: state for state in _ALARM_STATES})
        self.add_reader("state_topic", parse, "value_template")
        self.add_offer(self.custom_key, ("set",), AlarmPanel._write, type="enum", values=["disarmed", *modes])

    def _write(self, command: Command) -> Intent:
        """Return the message for a mode. Templates get the mode's payload as `action`, and the command's code."""
        mode = str(command.value)
        feature = "disarm" if mode == "disarmed" else _ALARM_MODES[mode]
        action, code = self.payload(feature), self._checked_code(command, feature)
        message = self.publish("command", action, action=action, code=code)
        if "state_topic" not in self.config:
            return Intent(messages=(message,))
        begun = (mode, "disarming") if mode == "disarmed" else (mode, "arming", "pending")
        return Intent(
            messages=(message,),
            shows={self.custom_key: mode},
            begins=shows_one_of(self.custom_key, begun),
        )

    def _checked_code(self, command: Command, feature: str) -> str:
        kind = feature if feature in ("disarm", "trigger") else "arm"
        expected = self.config.text("code")
        if not expected or not self.config.flag(f"code_{kind}_required", True):
            return command.code or ""
        code = code_of(command)
        if expected not in ("REMOTE_CODE", "REMOTE_CODE_TEXT") and code != expected:
            raise Invalid(f"the code for {command.capability} is wrong")
        return code
