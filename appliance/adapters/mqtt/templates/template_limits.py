"""The limits of templates, their errors, the undefined value, and the state of one rendering."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

MAX_TEMPLATE_BYTES = 8 * 1024
"""Bytes of a template."""

MAX_NODES = 500
"""Nodes of the tree of a template."""

MAX_TEMPLATE_DEPTH = 32
"""How deeply expressions and statements of a template may be nested."""

MAX_RENDER_STEPS = 2_000
"""Steps of one rendering; work on large values counts as many."""

MAX_STRING_CHARS = 64 * 1024
"""Characters of any text that a template makes, its result included."""

MAX_INTEGER = 2**63
"""No whole number in a template is larger."""


class TemplateFailed(Exception):
    """A template that does not fit the subset, costs too much, or met a value that it cannot work with."""


class ValueMissing(TemplateFailed):
    """A template asked for what the payload does not contain. That is normal: the value stays as it was."""


class Undefined:
    """A missing value: empty text, false, no elements. Any other use of it raises `ValueMissing`."""

    def __str__(self) -> str:
        return ""

    def __repr__(self) -> str:
        return "Undefined"  # what Jinja prints of one in a list, tuple or object

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Undefined)

    def __hash__(self) -> int:
        return 0


UNDEFINED = Undefined()


class Namespace:
    """The one object whose fields a template may set, `namespace(x=1)`."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields


class Rendering:
    """One rendering under way: its names, its steps, the instant it takes for now."""

    __slots__ = ("names", "now", "patterns", "steps")

    def __init__(self, names: dict[str, Any], now: datetime, patterns: frozenset[str]) -> None:
        self.names = names
        self.now = now
        self.patterns = patterns
        self.steps = 0

    def charge(self, steps: int = 1) -> None:
        """Count steps; `TemplateFailed` beyond `MAX_RENDER_STEPS`."""
        self.steps += steps
        if self.steps > MAX_RENDER_STEPS:
            raise TemplateFailed(f"takes more than {MAX_RENDER_STEPS} steps")

    def weigh(self, value: Any) -> Any:
        """The value, its elements counted as steps, 8 of them as one; for whatever looks at all of a value."""
        elements, waiting = 0, [value]
        while waiting:
            each = waiting.pop()
            if isinstance(each, dict):
                elements += len(each)
                waiting.extend(each.values())
            elif isinstance(each, list | tuple):
                elements += len(each)
                waiting.extend(each)
            elif isinstance(each, str):
                elements += len(each) // 256
            if elements > MAX_RENDER_STEPS * 8:
                self.charge(MAX_RENDER_STEPS + 1)
        self.charge(elements // 8)
        return value

    def text(self, value: Any) -> str:
        """The value as Python prints it; refused beyond `MAX_STRING_CHARS`."""
        if isinstance(value, str):
            return self.bounded(value)
        if isinstance(value, Namespace) or callable(value):
            raise TemplateFailed("a function cannot be printed")
        return self.bounded(str(self.weigh(value)))

    def bounded(self, text: str) -> str:
        """The text, its length counted; refused beyond `MAX_STRING_CHARS`."""
        if len(text) > MAX_STRING_CHARS:
            raise TemplateFailed(f"makes a text of more than {MAX_STRING_CHARS // 1024} KiB")
        self.charge(len(text) // 512)
        return text

    def elements(self, value: Any) -> Iterator[Any]:
        """The elements of a list, tuple, text or the keys of an object, each counted when it is taken."""
        if isinstance(value, Undefined):
            return
        if not isinstance(value, Iterable):
            raise TemplateFailed("goes through something that has no elements")
        for each in value:
            self.charge()
            yield each


def checked(value: Any) -> Any:
    """The value; a whole number beyond `MAX_INTEGER` is refused."""
    if isinstance(value, int) and not -MAX_INTEGER <= value < MAX_INTEGER:
        raise TemplateFailed("makes a number that is too large")
    return value
