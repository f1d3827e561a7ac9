"""Locks."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Entity, Intent
from appliance.adapters.mqtt.platforms.published import Fields, PublishedDevice, command_text, shown_text
from appliance.home.commands import Command
from appliance.home.values import Value


class LockEntity(Entity):
    """A lock; opening its latch is the action `open` of its custom attribute. A lock with a code requires it in each
    command."""

    def setup(self) -> None:
        self.need()
        states = ("locked", "unlocked", "jammed")
        words: dict[str, Value] = {self.config.text(f"state_{state}", state.upper()): state for state in states}
        words.setdefault(self.config.text("state_open", "OPEN"), "unlocked")
        words.setdefault(self.config.text("payload_reset", "None"), None)
        self.read("state_topic", self.words(words, "lock"), "value_template")
        self.offer("lock", ("lock", "unlock"), self._write)
        if "payload_open" in self.config:
            self.offer(self.custom, ("open",), self._write)
        self.claims = ("lock",)

    def _write(self, command: Command) -> Intent:
        code = self.code_of(command) if "code_format" in self.config else ""
        shows = {"lock": f"{command.action}ed"} if command.action != "open" else {}
        return self.intent("command", self.payload(command.action), shows, code=code)


def announce(device: PublishedDevice, key: str) -> Fields | None:
    """Return the fields of a lock of this hub; None for another attribute."""
    if key != "lock":
        return None
    payloads = {f"payload_{action}": command_text(key, action) for action in ("lock", "unlock")}
    states = {f"state_{state}": state for state in ("locked", "unlocked", "jammed")}
    return {"command_topic": device.set_topic, "value_template": shown_text(key), **payloads, **states}
