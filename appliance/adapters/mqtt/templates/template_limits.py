"""The limits of templates, their exceptions, and the state and cost of one rendering."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

MAX_TEMPLATE_BYTES = 8 * 1024

MAX_NODES = 500

MAX_TEMPLATE_DEPTH = 100
"""Maximum depth of a template's syntax tree. A chain of operators increases the depth."""

MAX_RENDER_STEPS = 2_000
"""Maximum number of steps of one rendering. Operations on large values take many steps."""

MAX_RENDER_SECS = 0.02
"""Maximum processor seconds of one rendering. `MAX_RENDER_STEPS` ends a rendering far earlier, except on a very slow
machine."""

MAX_STRING_CHARS = 64 * 1024
"""Maximum length of any text that a template creates, including its result."""

MAX_WEIGHT = 10_000
"""Maximum weight of a value that a template creates. Shared parts are counted each time."""

MAX_VALUE_DEPTH = 32
"""Maximum nesting depth of lists, tuples, and objects in a template. The same limit applies to a message's JSON."""

MAX_INTEGER = 2**63
"""Upper limit (exclusive) of integers in a template."""

TOO_LONG = f"creates a text of more than {MAX_STRING_CHARS // 1024} KiB"

CHARS_PER_STEP = 128
"""Number of characters that are read or created in one step, based on the measured speed of the slowest case
conversion."""

WEIGHT_PER_STEP = 6
"""Weight that is read or created in one step."""

_STEPS_BETWEEN_LOOKS = 50


class TemplateFailed(Exception):
    """A template is unsupported, too expensive, or uses an invalid value."""


class ValueMissing(TemplateFailed):
    """A template reads a value that is missing from the payload. A missing value is not a fault. The attribute
    keeps its value."""


class Namespace:
    """The only object whose fields a template may set, as in `namespace(x=1)`."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields


_SCALARS = (int, float, bool, type(None))


def weight(value: Any, allowed: int = MAX_WEIGHT, depth: int = 0) -> int:
    """Return the weight of a value: 1 for each part, and 1 for each 8 characters. Raise `TemplateFailed` if the
    weight exceeds `allowed`."""
    if isinstance(value, str):
        total = 1 + len(value) // 8
    elif isinstance(value, list | tuple | dict):
        if depth >= MAX_VALUE_DEPTH:
            raise TemplateFailed(f"creates a value nested more than {MAX_VALUE_DEPTH} levels deep")
        total = 1 + len(value)
        if total <= allowed:
            for part in value.values() if isinstance(value, dict) else value:
                if part.__class__ is str:
                    total += len(part) // 8
                elif part.__class__ not in _SCALARS:
                    total += weight(part, allowed - total + 1, depth + 1) - 1
            if isinstance(value, dict):
                total += sum(len(key) // 8 for key in value if isinstance(key, str))
    else:
        total = 1
    if total > allowed:
        raise TemplateFailed(f"creates a value of more than {MAX_WEIGHT:,} parts")
    return total


def whole(number: Any) -> Any:
    """Return a value unchanged. Raise `TemplateFailed` for an integer beyond `MAX_INTEGER`."""
    if isinstance(number, int) and not -MAX_INTEGER <= number < MAX_INTEGER:
        raise TemplateFailed("creates a number that is too large")
    return number


class Rendering:
    """One rendering: its names, its remaining steps, and its current time in the home's zone."""

    __slots__ = ("_deadline", "_look_at", "left", "literals", "names", "now")

    def __init__(self, names: dict[str, Any], now: datetime, literals: frozenset[str]) -> None:
        self.names = names
        self.now = now
        self.literals = literals
        self.left = MAX_RENDER_STEPS
        self._look_at = MAX_RENDER_STEPS - _STEPS_BETWEEN_LOOKS
        self._deadline = 0.0

    def charge(self, steps: int = 1) -> None:
        """Charge steps. Raise `TemplateFailed` if `MAX_RENDER_STEPS` or `MAX_RENDER_SECS` is exceeded."""
        self.left -= steps
        if self.left < self._look_at:
            self._look()

    def _look(self) -> None:
        if self.left < 0:
            raise TemplateFailed(f"takes more than {MAX_RENDER_STEPS:,} steps")
        self._look_at = self.left - _STEPS_BETWEEN_LOOKS
        now = time.thread_time()
        if not self._deadline:
            self._deadline = now + MAX_RENDER_SECS
        elif now > self._deadline:
            raise TemplateFailed(f"takes longer than {MAX_RENDER_SECS * 1000:.0f} ms")

    def weighed(self, value: Any) -> Any:
        """Return a value unchanged. Charge the weight of a list, tuple, or object that is created, or is read as a
        whole."""
        if isinstance(value, list | tuple | dict):
            self.charge(weight(value) // WEIGHT_PER_STEP)
        return value

    def made(self, value: Any) -> Any:
        """Return a value that the template created. Raise `TemplateFailed` if the value is too large."""
        if isinstance(value, str):
            return self.bounded(value)
        return self.weighed(value) if isinstance(value, list | tuple | dict) else whole(value)

    def text(self, value: Any) -> str:
        """Convert a value to text as Python does. Raise `TemplateFailed` if the text is longer than
        `MAX_STRING_CHARS`."""
        if isinstance(value, str):
            return value if len(value) < CHARS_PER_STEP else self.bounded(value)
        if isinstance(value, list | tuple | dict):
            return self.bounded(str(self.weighed(value)))
        if isinstance(value, Namespace):
            raise TemplateFailed("prints a namespace, which has no text")
        return str(value)

    def bounded(self, text: str) -> str:
        """Return a text unchanged, and charge its length. Raise `TemplateFailed` if it is longer than
        `MAX_STRING_CHARS`."""
        if len(text) > MAX_STRING_CHARS:
            raise TemplateFailed(TOO_LONG)
        self.charge(len(text) // CHARS_PER_STEP)
        return text

    def elements(self, value: Any) -> Iterator[Any]:
        """Yield the elements of a list, tuple, or text, or the keys of an object. Charge each element when it is
        yielded."""
        if not isinstance(value, Iterable):
            raise TemplateFailed("loops over a value without elements")
        for each in value:
            self.charge()
            yield each

    def search(self, text: str, needle: str) -> None:
        """Charge a search. Python may take as many passes as the needle has characters."""
        self.charge(len(text) // CHARS_PER_STEP + len(text) * min(len(needle), 100) // 20_000)
