"""Operations on the socket of a connection that asyncio's transport does not offer."""

from __future__ import annotations

import asyncio
import fcntl
import select
import sys
import termios


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Return the number of bytes that the client has not acknowledged: the bytes in the write buffer and, on
    Linux, those in the socket."""
    ours = transport.get_write_buffer_size()
    try:
        systems = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):
        return ours
    return ours + int.from_bytes(systems, sys.byteorder)


def disconnect_events(transport: asyncio.Transport) -> int:
    """Return flags without reading: `POLLERR` if the client has reset the connection, and `POLLRDHUP` if it has
    closed its sending side."""
    poll = select.poll()
    poll.register(transport.get_extra_info("socket"), select.POLLRDHUP)
    return sum(events for _, events in poll.poll(0))


def shutdown_write(transport: asyncio.Transport) -> None:
    """Half-close: send nothing more but continue receiving. Abort if the client is gone."""
    try:
        transport.write_eof()
    except OSError:
        transport.abort()
