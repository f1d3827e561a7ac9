"""A hostile vendor, whose answers are floods, bombs, and endless data. The module is run with `python -m`, and prints
its port.

Each connection has a thread, which sends exactly the given bytes over a plain socket. HOSTILE_MESSAGES is the number
of messages of a flood.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import re
import socket
import socketserver
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import repeat

MESSAGES = int(os.environ.get("HOSTILE_MESSAGES", "0"))
PIECE = 1 << 16
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
CHUNKED = JSON + b"Transfer-Encoding: chunked\r\n\r\n"
HEAD_OF_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def frame(text: bytes, opcode: int = 1, *, is_deflated: bool = False) -> bytes:
    """Return a server's WebSocket frame."""
    first = 0x80 | (0x40 if is_deflated else 0) | opcode
    if len(text) < 126:
        return bytes((first, len(text))) + text
    return struct.pack(">BBQ", first, 127, len(text)) + text


def deflated(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return (packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH)).removesuffix(b"\0\0\xff\xff")


def flood(piece: bytes) -> Iterator[bytes]:
    """Send `MESSAGES` copies of the piece as fast as possible."""
    at_once = max(1, PIECE // len(piece))
    yield from repeat(piece * at_once, MESSAGES // at_once + 1)


def dripping(head: bytes) -> Iterator[bytes]:
    """Send the head, followed by single bytes with pauses."""
    yield head
    while True:
        time.sleep(0.02)
        yield b"x"


def dripping_nothing() -> Iterator[bytes]:
    """Send nothing for a long time."""
    time.sleep(60)
    yield b""


def later(piece: bytes) -> Iterator[bytes]:
    """Send a good answer. Once the connection is idle, send endless unexpected bytes."""
    yield JSON + b"Content-Length: 2\r\n\r\n{}"
    time.sleep(0.2)
    yield from repeat(piece)


def bomb(encoding: str) -> Iterator[bytes]:
    """Send 64 MiB of zeros, compressed."""
    body = (gzip.compress if encoding == "gzip" else zlib.compress)(bytes(64 << 20))
    yield JSON + f"Content-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


BODIES: dict[str, Callable[[], Iterator[bytes]]] = {
    "/gzip": lambda: bomb("gzip"),
    "/deflate": lambda: bomb("deflate"),
    "/br": lambda: iter((JSON + b"Content-Encoding: br\r\nContent-Length: 4\r\n\r\n\x0b\x02\x80\x03",)),
    "/endless": lambda: iter_then(JSON + b"\r\n", repeat(b"x" * PIECE)),
    "/chunks": lambda: iter_then(CHUNKED, repeat(b"1\r\nx\r\n" * 9999)),
    "/extensions": lambda: iter_then(CHUNKED + b"1;", repeat(b"x" * PIECE)),
    "/headers": lambda: iter_then(b"HTTP/1.1 200 OK\r\n", (b"X-%d: y\r\n" % n * 999 for n in range(10**9))),
    "/header": lambda: iter_then(b"HTTP/1.1 200 OK\r\nX: ", repeat(b"y" * PIECE)),
    "/trailers": lambda: iter_then(CHUNKED + b"0\r\n", repeat(b"X: y\r\n" * 9999)),
    "/continues": lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 2999),
    "/hints": lambda: repeat(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 1999),
    "/status": lambda: iter_then(b"HTTP/1.1 200 ", repeat(b"O" * PIECE)),
    "/slow": lambda: dripping(JSON + b"\r\n"),
    "/slow-head": lambda: dripping(b"HTTP/1.1 200 OK\r\nX: "),
    "/silent": dripping_nothing,
    "/half": lambda: iter((JSON + b"Content-Length: 99\r\n\r\n{",)),
    "/after": lambda: iter_then(JSON + b"Content-Length: 2\r\n\r\n{}", repeat(EMPTY * 999)),
    "/later": lambda: later(EMPTY * 999),
    "/later-garbage": lambda: later(b"\0" * PIECE),
    "/deep": lambda: iter((JSON + b"\r\n" + b"[" * 500_000,)),
    "/wide": lambda: iter((JSON + b"\r\n[" + b"[],[]," * 170_000 + b"[]]",)),
    "/nested": lambda: iter((JSON + b"\r\n" + b"[" * 900 + b"]" * 900,)),
    "/keys": lambda: iter((JSON + b"\r\n{" + b",".join(b'"k%d":%d' % (n, n) for n in range(60_000)) + b"}",)),
    "/numbers": lambda: iter((JSON + b"\r\n[" + b"1e999," * 80_000 + b"9" * 500_000 + b"]",)),
    "/text": lambda: iter((JSON + b'\r\n"' + b"\\ud83d\\ude00" * 80_000 + b'"',)),
}
STREAMS: dict[str, Callable[[], Iterator[bytes]]] = {
    "/events": lambda: iter_then(HEAD_OF_STREAM, flood(b'data: {"level": 7}\n\n')),
    "/event": lambda: iter_then(HEAD_OF_STREAM + b"data: ", repeat(b"x" * PIECE)),
    "/lines": lambda: iter_then(HEAD_OF_STREAM, repeat(b"data:\n" * 9999)),
    "/comments": lambda: iter_then(HEAD_OF_STREAM, repeat(b":\n" * 9999)),
    "/blank": lambda: iter_then(HEAD_OF_STREAM, repeat(b"\n" * 9999)),
}
SOCKETS: dict[str, Callable[[], Iterator[bytes]]] = {
    "/ws/messages": lambda: flood(frame(b'{"level": 7}')),
    "/ws/texts": lambda: flood(frame(b"x")),
    "/ws/empty": lambda: flood(frame(b"")),
    "/ws/pings": lambda: flood(frame(b"", 9)),
    "/ws/pongs": lambda: flood(frame(b"", 10)),
    "/ws/fragments": lambda: iter_then(b"\x01\x01x", repeat(b"\x00\x01x" * 9999)),
    "/ws/empty-fragments": lambda: iter_then(b"\x01\x01x", repeat(b"\x00\x00" * 9999)),
    "/ws/huge": lambda: iter_then(struct.pack(">BBQ", 0x81, 127, 1 << 40), repeat(b"x" * PIECE)),
    "/ws/large": lambda: repeat(frame(b'"' + b"x" * (60 << 10) + b'"')),
    "/ws/bomb": lambda: iter((frame(deflated(bytes(64 << 20)), is_deflated=True),)),
    "/ws/garbage": lambda: repeat(b"\xff" * PIECE),
    "/ws/close": lambda: repeat(frame(b"\x03\xe8", 8) * 9999),
}


def iter_then(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from rest


class Hostile(socketserver.BaseRequestHandler):
    """One connection, with one request and one answer."""

    request: socket.socket

    def handle(self) -> None:
        with suppress(OSError):
            head = self.request.recv(65536) or b"GET / HTTP/1.1"
            path = head.split(b" ", 2)[1].partition(b"?")[0].decode()
            if path in SOCKETS:
                self._upgrade(head)
            for piece in {**BODIES, **STREAMS, **SOCKETS}.get(path, lambda: iter((JSON + b"\r\n{}",)))():
                self.request.sendall(piece)
            if path in SOCKETS:
                self.request.recv(65536)

    def _upgrade(self, head: bytes) -> None:
        found = re.search(rb"(?i)sec-websocket-key: (\S+)", head)
        key = hashlib.sha1(
            (found[1] if found else b"") + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11", usedforsecurity=False
        ).digest()
        self.request.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + base64.b64encode(key) + b"\r\n\r\n"
        )


class Server(socketserver.ThreadingTCPServer):
    """Listens on loopback, at a free port."""

    daemon_threads = True


if __name__ == "__main__":
    os.nice(10)  # a real vendor does not use the hub's processor
    with Server(("127.0.0.1", 0), Hostile) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
