"""The connection to a Matter controller server: requests, responses, and error messages.

Protocol: the WebSocket of python-matter-server, https://github.com/matter-js/python-matter-server, schema 9 to 11.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from appliance.adapters.device_http.web_socket import Messages
from appliance.adapters.matter.large_json import parse_large
from appliance.adapters.replies import Replies
from appliance.clock import Clock
from appliance.errors import AdapterFailed, BadAnswer, Unreachable
from appliance.tables.checks import format_value

SCHEMAS = (9, 11)
"""Oldest and newest supported version of the protocol."""

OPENING_SECS = 10.0
"""Time limit for the server to send its information and the list of nodes."""

MAX_DETAIL_CHARS, MAX_ID_CHARS = 200, 20
"""Maximum length of an error's details, and of a message id."""

NOT_AVAILABLE = 3

_ERRORS = {
    1: "the device could not be paired",
    2: "the device could not be interviewed",
    3: "the server does not reach the device",
    4: "the device's address is unknown",
    5: "the server does not know the device",
    6: "the server uses another version of the protocol",
    8: "the server did not understand the request",
    9: "the server does not know the request",
}
"""Messages by the server's error code. Code 0 is any other error, and its details contain Matter's status code."""

_STATUSES = {
    0x01: "the request failed",
    0x7D: "the server must first subscribe to the data",
    0x7E: "the Matter server is not permitted to do this",
    0x7F: "the device has no such endpoint",
    0x80: "the action is invalid for this device",
    0x81: "the device does not accept the command",
    0x85: "the command is malformed",
    0x86: "the device has no such attribute",
    0x87: "the value is out of range",
    0x88: "the attribute cannot be written",
    0x89: "the device has no resources left",
    0x8B: "the device does not have the requested item",
    0x8C: "the attribute cannot be reported",
    0x8D: "the value has the wrong type",
    0x8F: "the attribute cannot be read",
    0x92: "the data changed in the meantime",
    0x94: "the request took too long",
    0x9C: "the device is busy",
    0xC3: "the device has no such cluster",
    0xC6: "the request needs a timed interaction",
    0xCB: "the device cannot do this in its current state",
}
"""Messages by Matter's status code."""

_TIMEOUT = "CHIP Error 0x00000032"


class ServerConnection:
    """One open connection. Another task reads the connection's messages and passes them to `receive`.

    Methods may be called concurrently. `info` is the server's description of itself. `on_dropped` is called for each
    part of a message that is too large.
    """

    def __init__(self, messages: Messages, clock: Clock, address: str, on_dropped: Callable[[], None]) -> None:
        self.info: Mapping[str, Any] = {}
        self._messages = messages
        self._address = address
        self._clock = clock
        self._on_dropped = on_dropped
        self._replies = Replies(clock)

    async def open(self) -> list[Any]:
        """Return all nodes of the server, and subscribe to its events. Raise `AdapterFailed` on failure."""
        self.info = await self._next()
        if "schema_version" not in self.info:
            raise BadAnswer(f"{self._address} is not a Matter server, or sent a malformed answer")
        check_schema(self.info)
        await self._messages.send({"message_id": "listen", "command": "start_listening"})
        while (message := await self._next()).get("message_id") != "listen":
            pass
        nodes = _result_of(message)
        if not isinstance(nodes, list):
            raise BadAnswer(f"{self._address} does not answer with a list of nodes")
        return nodes

    async def _next(self) -> dict[str, Any]:
        async for message in self._messages:
            return self._checked(await parse_large(message, self._clock, self._on_dropped))
        raise Unreachable(f"{self._address} has closed the connection")

    async def ask(self, command: str, arguments: Mapping[str, Any], secs: float) -> Any:
        """Send a server command, and return its result. Late responses are ignored.

        Raise `NodeUnreachable` if there is no result within `secs` or if the server does not reach the device, and
        `BadAnswer` if the server or the device refuses.
        """

        async def send(number: int) -> None:
            await self._messages.send({"message_id": str(number), "command": command, "args": {**arguments}})

        try:
            answer = await self._replies.request(send, secs)
        except TimeoutError:
            raise NodeUnreachable(f"there was no answer within {secs:g} s") from None
        return _result_of(answer)

    def receive(self, message: Any, on_event: Callable[[str, Any], None]) -> None:
        """Process a response or an event. Raise `BadAnswer` for any other message."""
        message = self._checked(message)
        if isinstance(event := message.get("event"), str):
            on_event(event, message.get("data"))
        elif "message_id" in message:
            number = str(message["message_id"])
            if number.isdecimal() and len(number) < MAX_ID_CHARS:
                self._replies.take(int(number), message)
        elif "schema_version" not in message:
            raise BadAnswer(f"{self._address} is not a Matter server, or sent a malformed answer")

    def close(self, error: AdapterFailed) -> None:
        """Fail all waiting requests with this error."""
        self._replies.fail(error)

    def _checked(self, message: Any) -> dict[str, Any]:
        if not isinstance(message, dict):
            raise BadAnswer(f"{self._address} is not a Matter server, or sent a malformed answer")
        return message


class NodeUnreachable(Unreachable):
    """The server responds, but the device does not respond."""


class NodeRefused(BadAnswer):
    """The device refused the request. The message has the status and its meaning."""


def check_schema(info: Mapping[str, Any]) -> None:
    """Raise `BadAnswer` if the server's protocol is too old or too new."""
    own, oldest = info.get("schema_version"), info.get("min_supported_schema_version", 0)
    if not isinstance(own, int) or not isinstance(oldest, int):
        raise BadAnswer(f"the Matter server reported an invalid protocol version: {format_value(own)}")
    if own < SCHEMAS[0]:
        raise BadAnswer(
            f"the Matter server speaks schema {own}, but Lares needs {SCHEMAS[0]} or later; update the server"
        )
    if oldest > SCHEMAS[1]:
        raise BadAnswer(
            f"the Matter server needs schema {oldest}, but Lares supports only {SCHEMAS[1]}; update Lares"
        )


def _result_of(answer: Mapping[str, Any]) -> Any:
    """Return the result of a response. Raise the error that the response or its result contains."""
    if "error_code" not in answer:
        result = answer.get("result")
        _check_statuses(result)
        return result
    code, details = answer.get("error_code"), str(answer.get("details") or "")[:MAX_DETAIL_CHARS]
    if code == NOT_AVAILABLE:
        raise NodeUnreachable(f"{_ERRORS[NOT_AVAILABLE]} (error 3)")
    if _TIMEOUT in details:
        raise NodeUnreachable(f"the device does not answer ({_TIMEOUT}: Timeout)")
    if (found := re.search(r"(\w+) \((0x[0-9a-fA-F]{1,4})\)", details)) is not None:
        status = int(found[2], 16)
        raise NodeRefused(f"{_STATUSES.get(status, 'the device refused')} ({found[1]}, status 0x{status:02x})")
    meaning = _ERRORS.get(code, "the server refused") if isinstance(code, int) else "the server refused"
    raise BadAnswer(f"{meaning} (error {code}{': ' if details else ''}{details})")


def _check_statuses(result: Any) -> None:
    """Raise `BadAnswer` if an attribute was not written or read. The server itself reports these failures as
    successes."""
    for each in result if isinstance(result, list) else ():
        status = each.get("Status") if isinstance(each, dict) else None
        if isinstance(status, int) and status:
            raise NodeRefused(f"{_STATUSES.get(status, 'the device refused')} (status 0x{status:02x})")
    for each in result.values() if isinstance(result, dict) else ():
        if isinstance(each, dict) and "TLVValue" in each and "Reason" in each:
            _result_of({"error_code": 0, "details": each["Reason"]})
