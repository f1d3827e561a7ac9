"""Dates, times of day, and points in time."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, tzinfo
from zoneinfo import ZoneInfo

from appliance.adapters.mqtt.platforms.entity import Intent, Update
from appliance.adapters.mqtt.platforms.input import Input
from appliance.errors import Invalid
from appliance.home.commands import Command

_EXAMPLES = {"date": "2026-11-23", "time": "07:30:00", "datetime": "2026-11-23T07:30:00+01:00"}


class Moment(Input):
    """A date, a time of day, or both. A point in time with an offset, or in a known `timezone`, is shown in UTC."""

    def setup(self) -> None:
        self._component, name = self.announcement.component, self.config.text("timezone")
        self._zone: tzinfo | None = None
        if self._component == "datetime" and name:
            try:
                self._zone = ZoneInfo(name)
            except (OSError, ValueError, LookupError):
                raise Invalid(f"the timezone {name[:60]!r} is unknown") from None
        super().setup()

    def parse(self, text: str) -> Update:
        return {self.custom: None if text == "None" else self._canonical(text)} if text else {}

    def set_value(self, command: Command) -> Intent:
        return self.intent("command", command.value, {self.custom: self._canonical(command.value)})

    def _canonical(self, text: str) -> str:
        try:
            if self._component == "date":
                return date.fromisoformat(text).isoformat()
            if self._component == "time":
                return time.fromisoformat(text).isoformat()
            found = datetime.fromisoformat(text)
        except ValueError:
            raise Invalid(f"{text[:40]!r} is not a {self._component} like {_EXAMPLES[self._component]}") from None
        found = found.replace(tzinfo=self._zone) if found.tzinfo is None else found
        return (found if found.tzinfo is None else found.astimezone(UTC)).isoformat()
