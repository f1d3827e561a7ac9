"""Prints on the terminal: colours, local times, sizes, and progress."""

from __future__ import annotations

import io
import os
import re
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, tzinfo
from typing import TextIO

from appliance.cli.log_output import discard, one_line
from appliance.errors import StartFailed

PROGRESS_AFTER_SECS = 1.0
PROGRESS_EVERY_SECS = 0.2

MAX_ERROR_CHARS = 1000
"""Maximum number of characters of an error message, except the mark of its removed middle."""

_COLOURS = {"red": 31, "green": 32, "yellow": 33, "grey": 90}
_FRAMES = "|/-\\"
_COLOUR_MARK = f"<{os.urandom(8).hex()}>"
"""A placeholder for the start of a colour code. `say` escapes all control characters, then replaces the
placeholder."""


def say(*lines: str, to: TextIO | None = None) -> None:
    """Print each line on standard output or `to`. Escape control and invisible characters, except colours from
    `paint`. All commands print text with this function. Raise the exceptions of `write`."""
    if lines:
        write("\n".join(map(visible, lines)) + "\n", to)


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: `1 month`, `2 months`."""
    return f"{count} {noun}{'s' * (count != 1)}"


def write(text: str, to: TextIO | None = None) -> None:
    """Write and flush the text. Ignore errors of standard error.

    Raise `BrokenPipeError` if standard output has no reader, and `StartFailed` if standard output cannot be written.
    """
    try:
        print(text, end="", file=to or sys.stdout, flush=True)
    except OSError as error:
        if to is not sys.stderr and isinstance(error, BrokenPipeError):
            raise
        discard(to or sys.stdout)
        if to is sys.stderr:
            return
        raise StartFailed(f"standard output cannot be written: {error.strerror}", os.EX_IOERR) from None


def check_reader() -> None:
    """Raise `BrokenPipeError` if standard output no longer has a reader."""
    with suppress(io.UnsupportedOperation):
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        if any(state & select.POLLERR for _, state in poll.poll(0)):
            raise BrokenPipeError


def shorten_middle(sentence: str) -> str:
    """Remove the middle of a long error message, which can contain a long argument. The end can contain a remedy."""
    if len(sentence) <= MAX_ERROR_CHARS:
        return sentence
    return f"{sentence[: MAX_ERROR_CHARS // 2]} … {sentence[-MAX_ERROR_CHARS // 2 :]}"


def check_output() -> None:
    """Raise `StartFailed` if standard output is closed, read-only, or without a reader. A later write can still
    fail, for example on a full disk."""
    reason = "it is closed" if sys.__stdout__ is None else None
    try:
        check_reader()
        with suppress(io.UnsupportedOperation):
            os.write(sys.stdout.fileno(), b"")
    except OSError as error:
        reason = error.strerror or "it has no reader"
    if reason is not None:
        discard(sys.stdout)
        raise StartFailed(f"standard output cannot be written: {reason}; nothing was changed", os.EX_IOERR)


def visible(line: str) -> str:
    return one_line(line).replace(_COLOUR_MARK, "\x1b[")


def is_colourful(stream: TextIO) -> bool:
    """Return whether to use colours. The stream must be a terminal that supports colours, and NO_COLOR must not be
    set (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str) -> str:
    """Colour the text. If standard output does not support colours, return the text unchanged."""
    if not is_colourful(sys.stdout):
        return text
    return f"{_COLOUR_MARK}{_COLOURS[colour]}m{text}{_COLOUR_MARK}0m"


def fit(line: str) -> str:
    """Cut the line to the terminal's width, ignoring colour codes. If standard output is not a terminal, return the
    line unchanged."""
    if not sys.stdout.isatty():
        return line
    import shutil

    room, shown = shutil.get_terminal_size().columns, []
    for piece in re.split(f"({_COLOUR_MARK}[0-9]+m)", line):
        is_colour = piece.startswith(_COLOUR_MARK)
        shown.append(piece if is_colour else one_line(piece)[:room])
        room -= 0 if is_colour else len(shown[-1])
    return "".join(shown)


def local_time(stamp: str, zone: tzinfo | None) -> str:
    """Convert an RFC 3339 time to the zone. Omit fractions of a second."""
    return datetime.fromisoformat(stamp).astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def with_local_times(sentence: str, zone: tzinfo | None) -> str:
    """Convert the RFC 3339 times in a sentence to the zone."""
    return _TIME.sub(lambda found: local_time(found[0], zone), sentence)


def span(seconds: float) -> str:
    """Format a duration in its two largest units."""
    units = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
    parts, rest = [], int(seconds)
    for size, unit in units:
        if rest >= size:
            parts.append(f"{rest // size} {unit}")
            rest %= size
    return " ".join(parts[:2]) or "0 s"


def size(count: float) -> str:
    """Format a number of bytes in MB or kB."""
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


@contextmanager
def progress(what: str) -> Iterator[None]:
    """If the work takes more than a second, and standard error is a terminal, show the progress there."""
    if not sys.stderr.isatty():
        yield
        return
    is_over = threading.Event()
    worker = threading.Thread(target=_spin, args=(what, is_over), daemon=True)
    worker.start()
    try:
        yield
    finally:
        is_over.set()
        worker.join()


def _spin(what: str, is_over: threading.Event) -> None:
    if is_over.wait(PROGRESS_AFTER_SECS):
        return
    turns = 0
    while not is_over.wait(PROGRESS_EVERY_SECS):
        sys.stderr.write(f"\r{one_line(what)} {_FRAMES[turns % len(_FRAMES)]}")
        sys.stderr.flush()
        turns += 1
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()
