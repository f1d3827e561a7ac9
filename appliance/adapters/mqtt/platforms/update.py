"""Firmware updates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.adapters.mqtt.messages import parse_payload
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.numbers import clamped
from appliance.adapters.mqtt.platforms.payloads import Update
from appliance.errors import Invalid
from appliance.home.values import Value
from appliance.tables.checks import is_number

NO_VERSIONS = (None, "", "None", -1, "-1")
"""Versions that mean unknown. Zigbee2MQTT reports -1 until it has checked for an update."""


class UpdateEntity(Entity):
    """A firmware update. The attribute is `{installed, latest, progress?}` with the progress in percent. A command
    installs it."""

    device_class = ""

    def setup(self) -> None:
        self._versions: dict[str, Value] = {}
        self.add_reader("state_topic", UpdateEntity._parse_installed, "value_template")
        self.add_reader("latest_version_topic", UpdateEntity._parse_latest, "latest_version_template")
        if self.can("command") and (payload := self.config.text("payload_install")):
            self.add_offer(self.custom_key, ("install",), lambda self, _: self.intent("command", payload))

    def _parse_installed(self, text: str) -> Update:
        try:
            state = parse_payload(text)
        except Invalid:
            state = text
        if isinstance(state, dict):
            self._note_progress(state)
            keys = {"installed": "installed_version", "latest": "latest_version"}
            return self._show(**{name: state[key] for name, key in keys.items() if key in state})
        return self._show(installed=text) if text else {}

    def _parse_latest(self, text: str) -> Update:
        return self._show(latest=text) if text else {}

    def _note_progress(self, state: Mapping[str, Any]) -> None:
        """Store the progress of an installation in percent."""
        done: Any = state.get("update_percentage")
        if is_number(done) and state.get("in_progress", True) is not False:
            self._versions["progress"] = clamped(done)
        elif state.get("in_progress") is True:
            self._versions.setdefault("progress", 0)
        elif "in_progress" in state or "update_percentage" in state:
            self._versions.pop("progress", None)

    def _show(self, **versions: Value) -> Update:
        for name, version in versions.items():
            self._versions.pop(name, None)
            if version not in NO_VERSIONS:
                self._versions[name] = str(version)[:100]
        return {self.custom_key: dict(self._versions) or None}
