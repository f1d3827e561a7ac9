"""The interface of the senders, `web` and `mail`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from appliance.errors import BadAnswer


class Button(Struct, frozen=True):
    """A button of a message: the address of its hook, and the key."""

    label: str
    url: str
    key: str


class Sender(Protocol):
    """Sends one message. Raises `AdapterFailed`."""

    shows_buttons: bool

    async def send(self, message: str, title: str | None, buttons: Sequence[Button]) -> None:
        """Try once."""


class PartlySent(BadAnswer):
    """Some recipients received the message, and would receive it again at another try."""
