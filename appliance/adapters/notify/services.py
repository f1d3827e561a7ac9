"""The supported web services, and the placeholders of requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

PLACEHOLDERS = ("message", "title", "token", "actions")

PLACEHOLDER = re.compile(rf"\{{({'|'.join(PLACEHOLDERS)})\}}")
"""Matches a placeholder in a URL, header, or body."""


class Service(Struct, frozen=True, kw_only=True):
    """The request of a web service. `needs` lists the keys that the section must set.

    `max_chars` is the maximum number of characters of a message. If `counts_bytes` is true, `max_chars` is the
    maximum number of bytes in UTF-8. If `joins_title` is true, the title becomes the first line of the message.
    `buttons` is the part of the request that contains the buttons, or None if the service does not support buttons.
    """

    url: str
    path: str
    headers: Mapping[str, str] = {}
    body: str | None = None
    needs: tuple[str, ...]
    max_chars: int = 4096
    counts_bytes: bool = False
    joins_title: bool = False
    buttons: Literal["header", "keyboard"] | None = None


SERVICES: Mapping[str, Service] = {
    "ntfy": Service(
        url="https://ntfy.sh",
        path="/{topic}",
        headers={"Title": "{title}"},
        needs=("topic",),
        counts_bytes=True,
        buttons="header",
    ),
    "gotify": Service(
        url="",
        path="/message",
        headers={"X-Gotify-Key": "{token}"},
        body='{"title": "{title}", "message": "{message}"}',
        needs=("url", "token"),
    ),
    "pushover": Service(
        url="https://api.pushover.net",
        path="/1/messages.json",
        body='{"token": "{token}", "user": "{user}", "title": "{title}", "message": "{message}"}',
        needs=("token", "user"),
        max_chars=1024,
    ),
    "telegram": Service(
        url="https://api.telegram.org",
        path="/bot{token}/sendMessage",
        body='{"chat_id": "{chat}", "text": "{message}"}',
        needs=("token", "chat"),
        joins_title=True,
        buttons="keyboard",
    ),
}
"""Services by the value of the setting `service`."""
