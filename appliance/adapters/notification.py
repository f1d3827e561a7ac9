"""Messages to people, in the form that the operations in `[notify] targets` receive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from appliance.errors import Invalid
from appliance.home.texts import hook_id, strip_text
from appliance.home.values import Value
from appliance.tables.checks import format_value, string

MAX_MESSAGE_CHARS = 4096
"""Maximum length of a message, and of its title."""

MAX_ACTIONS, MAX_LABEL_CHARS = 3, 40
"""Maximum number of buttons per message, and maximum length of a button's label. ntfy supports up to three
buttons."""


EXAMPLE = '{ label = "Feed", hook = "feed" }'


class Action(Struct, frozen=True):
    """A button in a message. Pressing the button calls a hook."""

    label: str
    hook: str


class Notification(Struct, frozen=True):
    """A message that is not empty, with an optional title and with buttons."""

    message: str
    title: str | None
    actions: tuple[Action, ...] = ()

    @classmethod
    def parse(cls, payload: Mapping[str, Value]) -> Notification:
        """Parse `{message, title?, fields?}`. All `fields` except `actions` are ignored. Raise `Invalid` on
        failure."""
        message, title, fields = payload.get("message"), payload.get("title"), payload.get("fields")
        if not isinstance(message, str) or not message.strip():
            raise Invalid("the notification needs a non-empty message")
        if title is not None and not isinstance(title, str):
            raise Invalid("the title must be a text")
        if fields is not None and not isinstance(fields, dict | list):
            raise Invalid("`fields` must be a table with named entries")
        if len(message) > MAX_MESSAGE_CHARS or len(title or "") > MAX_MESSAGE_CHARS:
            raise Invalid(f"the message and the title can have at most {MAX_MESSAGE_CHARS} characters each")
        actions = parse_actions(fields.get("actions")) if isinstance(fields, dict) else ()
        return cls(message, title if title and title.strip() else None, actions)

    @property
    def text(self) -> str:
        return self.message if self.title is None else f"{self.title}: {self.message}"


def parse_actions(value: Any) -> tuple[Action, ...]:
    """Parse a list of `{label, hook}`. Raise `Invalid` on failure."""
    if value is None or value == {}:
        return ()
    if not isinstance(value, list) or len(value) > MAX_ACTIONS:
        raise Invalid(f"actions must be a list of up to {MAX_ACTIONS} tables like {EXAMPLE}")
    return tuple(map(_parse_action, value))


def _parse_action(value: Any) -> Action:
    if not isinstance(value, dict) or not {"label", "hook"} <= value.keys():
        raise Invalid(f"each action must be like {EXAMPLE}, not {format_value(value)}")
    if unknown := value.keys() - {"label", "hook"}:
        raise Invalid(f"each action can have only the fields label and hook, not {format_value(min(unknown))}")
    try:
        return Action(strip_text(string(value["label"]), MAX_LABEL_CHARS), hook_id.run(value["hook"]))
    except Invalid as fault:
        raise Invalid(f"the label or hook of an action is invalid: {fault}") from None
