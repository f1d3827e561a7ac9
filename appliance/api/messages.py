"""Messages: what a client may say on a WebSocket, though nobody listens."""

from __future__ import annotations

import codecs
from typing import Any

from websockets.frames import CloseCode, Frame, Opcode
from websockets.server import ServerProtocol

_DATA = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


class Messages:
    """Follows a client's messages over their frames: each has at most so many bytes, and text is UTF-8."""

    def __init__(self, most: int) -> None:
        self._most = most
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
        if self._size > self._most:
            return CloseCode.MESSAGE_TOO_BIG, f"a message may have {self._most} bytes"
        return None if self._is_readable(frame) else (CloseCode.INVALID_DATA, "the text is not UTF-8")

    def _is_readable(self, frame: Frame) -> bool:
        try:
            if self._decoder is not None:
                self._decoder.decode(frame.data, final=frame.fin)
        except UnicodeDecodeError:
            return False
        return True


class Protocol(ServerProtocol):
    """The `websockets` package's protocol, which also ends what RFC 6455 says a server must end.

    The package leaves UTF-8 to whoever reads the messages, and its own limit counts a ping between two fragments.
    """

    def __init__(self, most: int, **more: Any) -> None:
        super().__init__(max_size=(None, most), **more)
        self._messages = Messages(most)

    def recv_frame(self, frame: Frame) -> None:
        """Take a frame; one that is a fault ends the connection, and nothing behind it is heard."""
        super().recv_frame(frame)
        if (fault := self._messages.fault_of(frame)) is not None:
            self.fail(*fault)
