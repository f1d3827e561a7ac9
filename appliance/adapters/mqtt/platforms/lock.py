"""Locks and alarm panels, whose commands can require a code."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.mqtt.platforms.entity import Entity, shows_one_of
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.platforms.payloads import WordParser
from appliance.adapters.mqtt.templates import texts
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value


class LockEntity(Entity):
    """A lock. The action `open` of the lock's custom attribute opens the latch. If the lock has a code, each command
    must contain the code."""

    def setup(self) -> None:
        self.need()
        self._code_format = self._readable_format()
        states = ("locked", "unlocked", "jammed")
        words: dict[str, Value] = {self.config.text(f"state_{state}", state.upper()): state for state in states}
        words.setdefault(self.config.text("state_open", "OPEN"), "unlocked")
        words.setdefault(self.config.text("payload_reset", "None"), None)
        moving = tuple(
            self.config.text(f"state_{state}", state.upper()) for state in ("locking", "unlocking", "opening")
        )
        self.add_reader("state_topic", WordParser(words, "lock", ignored=moving, keeps=False), "value_template")
        self.add_offer("lock", ("lock", "unlock"), LockEntity._write)
        if "payload_open" in self.config:
            self.add_offer(self.custom_key, ("open",), LockEntity._write)
        self.claims = ("lock",)

    def _readable_format(self) -> str:
        """Return the pattern of codes. If the pattern is unreadable or too costly, add a problem and return an empty
        string."""
        pattern = self.config.text("code_format")
        try:
            texts.check(pattern)
        except TemplateFailed as fault:
            self.config.note(f"code_format {fault}")
            return ""
        return pattern

    def _write(self, command: Command) -> Intent:
        shows = {"lock": f"{command.action}ed"} if command.action != "open" else {}
        message = self.publish("command", self.payload(command.action), code=self._checked_code(command))
        return Intent(messages=(message,), shows=shows, fails=("jammed",))

    def _checked_code(self, command: Command) -> str:
        """Return the command's code, or an empty string if the lock requires none. Raise `Invalid`."""
        if "code_format" not in self.config:
            return ""
        code = _code_of(command)
        if self._code_format and not texts.fits(code, self._code_format):
            raise Invalid(f"the code for {command.capability} does not match the lock's code_format")
        return code


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
        parse = WordParser({state: state for state in _ALARM_STATES}, keeps=False)
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
        code = _code_of(command)
        if expected not in ("REMOTE_CODE", "REMOTE_CODE_TEXT") and code != expected:
            raise Invalid(f"the code for {command.capability} is wrong")
        return code


def _code_of(command: Command) -> str:
    """Return the command's code. Raise `Invalid` if the code is missing."""
    if command.code is None:
        raise Invalid(f"{command.capability} requires a code; add the field `code` to the command")
    return command.code
