"""Locks."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Entity, Intent
from appliance.adapters.mqtt.platforms.published import Fields, PublishedDevice, command_text, shown_text
from appliance.adapters.mqtt.templates import texts
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value


class LockEntity(Entity):
    """A lock. The action `open` of its custom attribute opens its latch. A lock with a code requires it in each
    command."""

    def setup(self) -> None:
        self.need()
        self._code_format = self._readable_format()
        states = ("locked", "unlocked", "jammed")
        words: dict[str, Value] = {self.config.text(f"state_{state}", state.upper()): state for state in states}
        words.setdefault(self.config.text("state_open", "OPEN"), "unlocked")
        words.setdefault(self.config.text("payload_reset", "None"), None)
        moving = [self.config.text(f"state_{state}", state.upper()) for state in ("locking", "unlocking", "opening")]
        self.read("state_topic", self.words(words, "lock", ignored=moving, is_kept=False), "value_template")
        self.offer("lock", ("lock", "unlock"), self._write)
        if "payload_open" in self.config:
            self.offer(self.custom, ("open",), self._write)
        self.claims = ("lock",)

    def _readable_format(self) -> str:
        """Return the pattern of codes. If it is unreadable or too costly, note a problem and return an empty text."""
        pattern = self.config.text("code_format")
        try:
            texts.check(pattern)
        except TemplateFailed as fault:
            self.config.problems.append(f"code_format {fault}")
            return ""
        return pattern

    def _write(self, command: Command) -> Intent:
        shows = {"lock": f"{command.action}ed"} if command.action != "open" else {}
        message = self.publish("command", self.payload(command.action), code=self._checked_code(command))
        return Intent(messages=(message,), shows=shows, fails=("jammed",))

    def _checked_code(self, command: Command) -> str:
        """Return the command's code, or an empty text if the lock requires none. Raise `Invalid`."""
        if "code_format" not in self.config:
            return ""
        code = self.code_of(command)
        if self._code_format and not texts.fits(code, self._code_format):
            raise Invalid(f"the code for {command.capability} does not match the lock's code_format")
        return code


def announce(device: PublishedDevice, key: str) -> Fields | None:
    if key != "lock":
        return None
    payloads = {f"payload_{action}": command_text(key, action) for action in ("lock", "unlock")}
    states = {f"state_{state}": state for state in ("locked", "unlocked", "jammed")}
    return {"command_topic": device.set_topic, "value_template": shown_text(key), **payloads, **states}
