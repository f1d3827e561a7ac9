"""The interface of the senders in `web` and `mail`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from appliance.errors import BadAnswer


class Button(Struct, frozen=True):
    """A button of a message: its label, the address of its hook, and the hook's key."""

    label: str
    url: str
    key: str


class Sender(Protocol):
    """Sends messages to one service. The arguments of the constructor are the settings, the context, the token,
    and the password."""

    shows_buttons: bool

    async def send(self, message: str, title: str | None, buttons: Sequence[Button]) -> None:
        """Make one attempt. Raise `AdapterFailed` on failure."""


class PartlySent(BadAnswer):
    """Raised if only some recipients received the message. Another attempt would send the message to these
    recipients again."""
