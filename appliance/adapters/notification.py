"""A message to people, as the operations of `[notify] targets` are handed it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from appliance.errors import Invalid
from appliance.home.values import Value

MAX_MESSAGE_CHARS = 4096
"""Characters of a message, and of its title."""


class Notification(Struct, frozen=True):
    """A message that is not empty, and its title, if it has one."""

    message: str
    title: str | None

    @classmethod
    def parse(cls, payload: Mapping[str, Value]) -> Notification:
        """The notification of `{message, title?, fields?}`; other fields are not looked at. Raises `Invalid`."""
        message, title, fields = payload.get("message"), payload.get("title"), payload.get("fields")
        if not isinstance(message, str) or not message.strip():
            raise Invalid("the notification needs a message, a text that is not empty")
        if title is not None and not isinstance(title, str):
            raise Invalid("the title must be a text")
        if fields is not None and not isinstance(fields, dict | list):
            raise Invalid("the fields must be a table with named fields")
        if len(message) > MAX_MESSAGE_CHARS or len(title or "") > MAX_MESSAGE_CHARS:
            raise Invalid(f"message and title may have {MAX_MESSAGE_CHARS} characters each")
        return cls(message, title if title and title.strip() else None)

    @property
    def text(self) -> str:
        """Title and message as one text."""
        return self.message if self.title is None else f"{self.title}: {self.message}"
