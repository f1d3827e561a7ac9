"""The fields of an announced configuration. An unreadable field does not affect other fields."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from appliance.adapters.mqtt.templates.template import JinjaTemplate, Template
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed, ValueMissing
from appliance.adapters.mqtt.topic_filters import (
    MAX_TOPIC_BYTES,
    MAX_TOPIC_LEVELS,
    is_filter,
    is_too_long,
    is_topic,
)

_YES = ("true", "yes", "on", "1")

MAX_QUICK_CHARS = 500
"""Number of template characters that are parsed in one step. A step takes a few milliseconds at most."""

LOOK_CHARS = 1
"""Reading one part of a configuration takes as long as parsing this number of template characters."""


def parse_templates(config: Any) -> Iterator[None]:
    """Parse the templates of a configuration in steps. Afterwards, building the entities is fast."""
    waiting, unparsed = [config], 0
    while waiting:
        each = waiting.pop()
        unparsed += LOOK_CHARS
        if isinstance(each, dict | list):
            waiting.extend(each.values() if isinstance(each, dict) else each)
        elif isinstance(each, str) and ("{{" in each or "{%" in each):
            with contextlib.suppress(TemplateFailed):
                JinjaTemplate(each)
            unparsed += len(each)
        if unparsed > MAX_QUICK_CHARS:
            unparsed = 0
            yield


class Texts(Struct, frozen=True, gc=False):
    """The texts of a list in a configuration. Unlike a Python list, an object of this class does not make the garbage
    collector track the configuration."""

    values: tuple[str, ...]


class AnnouncedFields(Struct, gc=False):
    """One configuration with full names. The keys of `problems` are sentences about unreadable fields."""

    raw: Mapping[str, Any]
    problems: dict[str, None] = field(default_factory=dict)

    def __contains__(self, key: str) -> bool:
        return self.raw.get(key) is not None

    def text(self, key: str, default: str = "") -> str:
        """Return the value as Python formats it. For example, JSON's `false` becomes `False`, as in a rendered
        template. If the value is a list or an object, add a problem, and return the default."""
        value = self.raw.get(key)
        if isinstance(value, dict | list | Texts):
            self.note(f"{key} is not a text")
            return default
        return default if value is None else str(value)

    def number(self, key: str, default: float) -> float:
        """Return a number, which may be announced as text."""
        value = self.raw.get(key)
        try:
            found = float(value) if not isinstance(value, bool) and value is not None else default
        except (TypeError, ValueError, OverflowError):
            self.note(f"{key} is not a number")
            return default
        return found if abs(found) < 1e15 else default

    def bounds(self, low_key: str, high_key: str, low: float, high: float) -> tuple[float, float]:
        """Return the lower and the upper bound, or the defaults if the announced bounds are invalid."""
        found = self.number(low_key, low), self.number(high_key, high)
        if found[0] <= found[1]:
            return found
        self.note(f"{low_key} is above {high_key}")
        return low, high

    def flag(self, key: str, default: bool = False) -> bool:
        """Return a boolean, which may be announced as text."""
        value = self.raw.get(key)
        if value is None:
            return default
        return value.strip().lower() in _YES if isinstance(value, str) else bool(value)

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return a list of texts. A single text becomes a list with one element."""
        value = self.raw.get(key)
        if isinstance(value, str):
            return (value,)
        if isinstance(value, Texts):
            return value.values
        return tuple(str(each) for each in value[:500]) if isinstance(value, list) else default

    def topic(self, key: str) -> str | None:
        """Return a topic filter to subscribe to. Return None if the filter is missing or malformed."""
        return self._checked(key, is_filter)

    def target(self, key: str) -> str | None:
        """Return a topic to publish to. Return None if the topic is missing or malformed."""
        return self._checked(key, is_topic)

    def template(self, *keys: str) -> Template | None:
        """Return the first announced template under these keys.

        If the template is unreadable, add a problem, and return a template that never renders a value.
        """
        for key in keys:
            if isinstance(text := self.raw.get(key), Template):
                return text
            if isinstance(text, str) and text:
                try:
                    return JinjaTemplate(text)
                except TemplateFailed as fault:
                    self.note(f"{key} {fault}")
                    return _UNREADABLE
        return None

    def _checked(self, key: str, is_valid: Callable[[str], bool]) -> str | None:
        value = self.raw.get(key)
        if value is None or value == "":
            return None
        if isinstance(value, str) and is_valid(value):
            return value
        if isinstance(value, str) and is_too_long(value):
            self.note(f"{key} has more than {MAX_TOPIC_LEVELS} levels or {MAX_TOPIC_BYTES} bytes")
        else:
            self.note(f"{key} is not a topic")
        return None

    def note(self, problem: str) -> None:
        """Add a problem."""
        self.problems[problem] = None


class _UnreadableTemplate(Template, frozen=True, gc=False):
    """Replaces an unreadable template, and never renders a value."""

    def render(self, names: Mapping[str, Any], now: datetime) -> str:
        raise ValueMissing("is a template that cannot be read")


_UNREADABLE = _UnreadableTemplate()


def is_unreadable(given: Template | None) -> bool:
    """Return whether this template replaces an unreadable one."""
    return given is _UNREADABLE
