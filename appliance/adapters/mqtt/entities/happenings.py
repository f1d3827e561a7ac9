"""Events and triggers: what happens at a device, never a state."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.mqtt.entities.entity import Entity, EntityEvent, is_unknown
from appliance.adapters.mqtt.payloads import parse_object
from appliance.errors import Invalid
from appliance.home.values import Value

_PREFIXES = ("action_", "button_", "click_", "btn_", "event_", "key_")
"""What announcers put in front of the name of a press."""

_PRESSES: Mapping[str, tuple[str, ...]] = {
    "single": ("single_press", "single_click", "single_push", "single_tap", "short_press", "short_click", "1_click"),
    "double": ("double_press", "double_click", "double_push", "double_tap", "2_click"),
    "triple": ("triple_press", "triple_click", "triple_push", "triple_tap", "3_click"),
    "long": ("long_press", "long_click", "long_push", "long_tap"),
    "release": ("long_release", "short_release", "hold_release", "long_press_release"),
}
"""The names of presses by what announcers write, alone or as the first or last words of a longer name."""

_ALONE: Mapping[str, str] = {
    **dict.fromkeys(("short", "press", "pressed", "click", "clicked", "tap", "s"), "single"),
    "press_release": "release",
    "ss": "double",
    "sss": "triple",
    "l": "long",
    "held": "hold",
    "released": "release",
}
"""Words that mean a press only where they are the whole name."""

_WORDS = sorted(((raw, word) for word, each in _PRESSES.items() for raw in each), key=lambda pair: -len(pair[0]))


def press_name(raw: str) -> str:
    """The name of an event however it is announced: in lower case, without prefixes, a press by its own word."""
    name = _without_prefix(raw.lower().replace(" ", "_"))
    if name in _ALONE:
        return _ALONE[name]
    for given, word in _WORDS:
        if name == given:
            return word
        if name.startswith(f"{given}_"):
            return f"{word}_{_without_prefix(name.removeprefix(f'{given}_'))}"
        if name.endswith(f"_{given}"):
            return f"{name.removesuffix(f'_{given}')}_{word}"
    return f"single_{_without_prefix(name.removeprefix('press_'))}" if name.startswith("press_") else name


def _without_prefix(name: str) -> str:
    while (prefix := next((each for each in _PREFIXES if name.startswith(each) and name != each), "")) != "":
        if any(name == given for given, _ in _WORDS):
            break
        name = name.removeprefix(prefix)
    return name


def event_of(raw: str, data: Mapping[str, Value] | None = None) -> EntityEvent:
    """The event of an announcer's word; the word itself stands in `raw` of its data."""
    return EntityEvent(press_name(raw)[:MAX_EVENT_CHARS], {"raw": raw[:MAX_EVENT_CHARS], **(data or {})})


MAX_EVENT_CHARS = 100
"""Characters of an event's name."""


class EventEntity(Entity):
    """An entity whose messages are events: JSON with `event_type`.

    `source` is its object id where the device has several such entities; it is `entity` in the data of the events.
    """

    component_class = "button"
    reports_events = True
    source = ""

    def setup(self) -> None:
        """Read the state topic."""
        self.read("state_topic", self._parse, "value_template")
        self.event_names = tuple(event_of(each).name for each in self.config.texts("event_types"))

    def _parse(self, text: str) -> EntityEvent | None:
        if text == "":
            return None
        found = parse_object(text, "an event")
        name = found.pop("event_type", None)
        if not isinstance(name, str) or not name or name == "None":
            return None
        return event_of(name, self._own_data() | found)

    def _own_data(self) -> dict[str, Value]:
        return {"entity": self.source} if self.source else {}


class ActionSensor(EventEntity):
    """A sensor named `action` whose texts are presses, as Zigbee2MQTT announces them to old readers."""

    def _parse(self, text: str) -> EntityEvent | None:
        return event_of(text, self._own_data()) if text and not is_unknown(text) else None


class Tag(Entity):
    """A reader of tags: each scan is an event `tag` with the tag's text in `tag`."""

    component_class = "tag"
    reports_events = True
    event_names = ("tag",)

    def setup(self) -> None:
        """Read the one topic."""
        self.read("topic", self._parse, "value_template")

    def _parse(self, text: str) -> EntityEvent | None:
        return EntityEvent("tag", {"tag": text[:1000]}) if text and not is_unknown(text) else None


class TriggerEntity(Entity):
    """A trigger of a device automation: a payload at a topic."""

    component_class = "button"
    reports_events = True

    def setup(self) -> None:
        """Read the one topic; the event's name is type and subtype."""
        words = [self.config.text(key) for key in ("type", "subtype")]
        self._name = "_".join(dict.fromkeys(each for each in words if each))
        if not self._name:
            raise Invalid("has no type")
        self.payload = self.config.text("payload") if "payload" in self.config else None
        self.read("topic", self._parse, "value_template")
        self.event_names = (event_of(self._name).name,)

    def _parse(self, text: str) -> EntityEvent | None:
        is_pressed = bool(text) if self.payload is None else text == self.payload
        return event_of(self._name) if is_pressed else None
