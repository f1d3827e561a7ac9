"""Locks, whose commands can require a code."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Entity
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
        self.add_reader("state_topic", WordParser(words, "lock", ignored=moving), "value_template")
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
        """Return the command's code, or an empty string. Raise `Invalid` if the lock's format rejects the code."""
        if "code_format" not in self.config:
            return command.code or ""
        code = code_of(command)
        if self._code_format and not texts.fits(code, self._code_format):
            raise Invalid(f"the code for {command.capability} does not match the lock's code_format")
        return code


def code_of(command: Command) -> str:
    """Return the command's code. Raise `Invalid` if the code is missing."""
    if command.code is None:
        raise Invalid(f"{command.capability} requires a code; add the field `code` to the command")
    return command.code
