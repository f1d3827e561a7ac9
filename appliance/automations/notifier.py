"""MessageSender: tells people something, through the operations of adapters that the configuration names."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from appliance.adapters.dispatch import Status
from appliance.errors import Invalid, LaresError, Unsupported
from appliance.lua.context import Context

MAX_MESSAGE = 4096
"""Characters of a message."""

log = logging.getLogger("notify")


class MessageSender:
    """What `ctx:notify` does. `targets` are `<section>:<operation>`; without any, a message is a line of the log."""

    def __init__(self, targets: Sequence[str]) -> None:
        self._targets = targets

    async def notify(self, context: Context, message: str, fields: Any, _: None) -> list[dict[str, Any]]:
        """Send the message to every target; what came of it, in the order of the targets."""
        if not message.strip() or len(message) > MAX_MESSAGE:
            raise Invalid(f"ctx:notify: the message must have 1 to {MAX_MESSAGE} characters")
        if fields is not None and not isinstance(fields, dict) and fields != []:
            raise Invalid("ctx:notify: the fields must be a table with named fields")
        if not self._targets:
            log.info("%s", message, extra={"source": context.source})
            return [_result("notify", Status.UNSUPPORTED, "no targets are configured: [notify] targets")]
        payload: dict[str, Any] = {"message": message, "fields": fields or {}}
        title = payload["fields"].get("title")
        if isinstance(title, str):
            payload["title"] = title
        return [await self._send(context, target, payload) for target in self._targets]

    async def _send(self, context: Context, target: str, payload: dict[str, Any]) -> dict[str, Any]:
        try:
            await context.invoke(target, payload)
        except Unsupported as error:
            return _result(target, Status.UNSUPPORTED, str(error))
        except LaresError as error:
            log.warning("%s: the message was not sent: %s", target, error)
            return _result(target, Status.ERROR, str(error))
        return _result(target, Status.OK, None)


def _result(target: str, status: Status, message: str | None) -> dict[str, Any]:
    return {"target": target, "status": status, "message": message}
