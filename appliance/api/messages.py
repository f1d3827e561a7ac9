"""Inbound WebSocket messages: their size and their UTF-8 are checked, and they are discarded."""

from __future__ import annotations

import codecs
from typing import Any

from websockets.frames import CloseCode, Frame, Opcode
from websockets.server import ServerProtocol

_DATA = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


class MessageCheck:
    """Follows a client's messages over their frames: each has at most `max_bytes`, and text is UTF-8."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._size = 0
        self._decoder: codecs.IncrementalDecoder | None = None

    def fault_of(self, frame: Frame) -> tuple[CloseCode, str] | None:
        """Why this frame must end the connection, at once and not only with its message; None when it need not."""
        if frame.opcode not in _DATA:
            return None
        if frame.opcode is not Opcode.CONT:
            self._size = 0
            self._decoder = codecs.getincrementaldecoder("utf-8")() if frame.opcode is Opcode.TEXT else None
        self._size += len(frame.data)
        if self._size > self._max_bytes:
            return CloseCode.MESSAGE_TOO_BIG, f"a message may have {self._max_bytes} bytes"
        return None if self._is_readable(frame) else (CloseCode.INVALID_DATA, "the text is not UTF-8")

    def _is_readable(self, frame: Frame) -> bool:
        try:
            if self._decoder is not None:
                self._decoder.decode(frame.data, final=frame.fin)
        except UnicodeDecodeError:
            return False
        return True


class StrictProtocol(ServerProtocol):
    """The `websockets` package's protocol, which also fails connections that RFC 6455 says a server must fail.

    The package does not check UTF-8 before a message is read, and its own limit counts a ping between two fragments.
    """

    def __init__(self, max_bytes: int, **more: Any) -> None:
        super().__init__(max_size=(None, max_bytes), **more)
        self._messages = MessageCheck(max_bytes)

    def recv_frame(self, frame: Frame) -> None:
        """Process a frame; an invalid one fails the connection, and what follows it is ignored."""
        super().recv_frame(frame)
        if (fault := self._messages.fault_of(frame)) is not None:
            self.fail(*fault)
