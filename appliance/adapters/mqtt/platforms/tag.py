"""Tag readers."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Entity, EntityEvent, is_unknown


class Tag(Entity):
    """A tag reader. Each scan is an event `tag` with the tag's text in `tag`."""

    reports_events = True
    event_names = ("tag",)

    def setup(self) -> None:
        self.read("topic", self._parse, "value_template")

    def _parse(self, text: str) -> EntityEvent | None:
        return EntityEvent("tag", {"tag": text[:1000]}) if text and not is_unknown(text) else None
