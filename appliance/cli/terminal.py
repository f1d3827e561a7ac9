"""The terminal: colours where there is a terminal, times as people read them, and progress of long work."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, tzinfo
from typing import TextIO

from appliance.cli.logs import discard, one_line
from appliance.errors import StartFailed

PROGRESS_AFTER_SECS = 1.0
PROGRESS_EVERY_SECS = 0.2

_COLOURS = {"red": 31, "green": 32, "yellow": 33, "grey": 90}
_FRAMES = "|/-\\"
_COLOUR_MARK = f"<{os.urandom(8).hex()}>"
"""Stands for the beginning of a colour's code until the line is printed; no text from outside can name it."""


def say(*lines: str, to: TextIO | None = None) -> None:
    """Print the lines, each as one line, on standard output or `to`: the only way of text to a terminal.

    What steers a terminal or is invisible is printed as an escape, but for the colours of `paint`. Raises as `write`.
    """
    if lines:
        write("\n".join(map(visible, lines)) + "\n", to)


def counted(count: int, noun: str) -> str:
    """`1 month`, `2 months`."""
    return f"{count} {noun}{'s' * (count != 1)}"


def write(text: str, to: TextIO | None = None) -> None:
    """Write the text as it stands, at once. What standard error does not take is lost: the work goes on.

    Raises `BrokenPipeError` where nobody reads standard output, `StartFailed` where it takes nothing.
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


def visible(line: str) -> str:
    """The line as `say` prints it."""
    return one_line(line).replace(_COLOUR_MARK, "\x1b[")


def is_colourful(stream: TextIO) -> bool:
    """Whether to use colours: on a terminal that has them, unless NO_COLOR is set (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str) -> str:
    """The text in this colour once `say` prints it, or as it is where standard output shows none."""
    if not is_colourful(sys.stdout):
        return text
    return f"{_COLOUR_MARK}{_COLOURS[colour]}m{text}{_COLOUR_MARK}0m"


def fit(line: str) -> str:
    """The line, cut to the terminal's width where standard output is one; colours take no room."""
    if not sys.stdout.isatty():
        return line
    import shutil

    room, shown = shutil.get_terminal_size().columns, []
    for piece in re.split(f"({_COLOUR_MARK}[0-9]+m)", line):
        is_colour = piece.startswith(_COLOUR_MARK)
        shown.append(piece if is_colour else one_line(piece)[:room])
        room -= 0 if is_colour else len(shown[-1])
    return "".join(shown)


def local_time(stamp: str, zone: tzinfo | None = None) -> str:
    """An RFC 3339 time in the zone, else in the box's own, to the second."""
    return datetime.fromisoformat(stamp).astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def with_local_times(sentence: str, zone: tzinfo | None = None) -> str:
    """Return the sentence with its RFC 3339 times in the zone."""
    return _TIME.sub(lambda found: local_time(found[0], zone), sentence)


def span(seconds: float) -> str:
    """A duration in the two largest units that fit."""
    units = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
    parts, rest = [], int(seconds)
    for size, unit in units:
        if rest >= size:
            parts.append(f"{rest // size} {unit}")
            rest %= size
    return " ".join(parts[:2]) or "0 s"


def size(count: float) -> str:
    """A number of bytes as people read it."""
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Show on a terminal's standard error that the work goes on, once it has taken a second."""
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
