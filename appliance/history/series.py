"""Series: the values of one attribute over time, as columns of numbers, so that an entry costs 18 bytes."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from sys import getsizeof
from typing import Any, TypeGuard

MAX_ENTRIES = 8192
"""Entries of one series, so that thinning it never takes long, and the forms of its values fit into two bytes."""

SERIES_BYTES = 900
"""What a series costs beside its columns: the objects themselves, and its place in the tables."""

FORM_BYTES = 150
"""What one form of a value costs beside its text."""

MINUTE_MS, HOUR_MS = 60_000, 3_600_000

_MAX_EXACT = 1 << 53
"""Integers beyond this are not exact as floats."""

Beside = Mapping[str, Any] | None
"""What stands beside the number in a value, its unit for one; None for a number alone."""

_Form = tuple[type[Any], str]
"""How a number becomes a value: its type, and as JSON what stands beside it. `str` and a JSON text: a constant."""


class Series:
    """Entries in the order of time, in milliseconds since 1970. `size` is what they cost, in bytes.

    A value of None says that the attribute was not there.
    """

    __slots__ = ("_constants_bytes", "_forms", "_forms_of", "_index_of", "_numbers", "times")

    def __init__(self) -> None:
        self.times = array("q")
        self._numbers = array("d")
        self._forms_of = array("H")
        self._forms: list[_Form] = []
        self._index_of: dict[_Form, int] = {}
        self._constants_bytes = 0

    def __len__(self) -> int:
        return len(self.times)

    @property
    def size(self) -> int:
        """Bytes of memory that the series takes, its columns and forms included."""
        columns = getsizeof(self.times) + getsizeof(self._numbers) + getsizeof(self._forms_of)
        return columns + self._constants_bytes + SERIES_BYTES

    def append(self, at: int, value: Any) -> None:
        """Add an entry. Entries that claim to be later came from a clock that was set back: they now end here."""
        index = len(self.times) - 1
        while index >= 0 and self.times[index] > at:
            self.times[index] = at
            index -= 1
        form, number = _split(value)
        self.times.append(at)
        self._numbers.append(number)
        self._forms_of.append(self._index(form))

    def value_at(self, index: int) -> Any:
        """The value of the entry at this index."""
        return _join(self._forms[self._forms_of[index]], self._numbers[index])

    def last_until(self, at: int) -> int | None:
        """The index of the entry that was in force at that time; None where that is not known."""
        index = bisect_right(self.times, at) - 1
        return None if index < 0 else index

    def list_indices(self, first_ms: int, last_ms: int, step_ms: int) -> Iterator[int]:
        """The entries between the two times, both included, newest first; of each step of time the last alone."""
        bucket = None
        for index in range(bisect_right(self.times, last_ms) - 1, bisect_left(self.times, first_ms) - 1, -1):
            if step_ms == 0 or bucket != self.times[index] // step_ms:
                yield index
            bucket = self.times[index] // step_ms if step_ms else None

    def thin(self, target: int) -> None:
        """Keep at most so many entries: the newest as they are, older ones one a minute, the oldest one an hour."""
        recent = target // 12
        edge = len(self) - max(recent, 1)
        by_minute = self._last_of_each(range(edge), MINUTE_MS)
        split = max(0, len(by_minute) - recent)
        by_hour = self._last_of_each(by_minute[:split], HOUR_MS)
        room = target - (len(self) - edge) - (len(by_minute) - split)
        oldest = by_hour[-room:] if room > 0 else []
        self._keep([*oldest, *by_minute[split:], *range(edge, len(self))])

    def _last_of_each(self, indices: range | list[int], step_ms: int) -> list[int]:
        buckets = {self.times[index] // step_ms: index for index in indices}
        return list(buckets.values())

    def _keep(self, indices: list[int]) -> None:
        self.times = array("q", [self.times[index] for index in indices])
        self._numbers = array("d", [self._numbers[index] for index in indices])
        forms, forms_of = self._forms, self._forms_of
        self._forms, self._index_of, self._constants_bytes = [], {}, 0
        self._forms_of = array("H", [self._index(forms[forms_of[index]]) for index in indices])

    def _index(self, form: _Form) -> int:
        """The index of the form in the table; a new one is added."""
        index = self._index_of.get(form)
        if index is None:
            index = self._index_of[form] = len(self._forms)
            self._forms.append(form)
            self._constants_bytes += getsizeof(form[1]) + FORM_BYTES
        return index


def split_number(value: Any) -> tuple[Beside, int | float] | None:
    """A value's number and what stands beside it; None where it is a word, a boolean or anything else."""
    if _is_exact(value):
        return None, value
    number = value.get("value") if isinstance(value, Mapping) else None
    if _is_exact(number):
        return {key: each for key, each in value.items() if key != "value"}, number
    return None


def _split(value: Any) -> tuple[_Form, float]:
    """The value as a form and a number."""
    if (split := split_number(value)) is None:
        return (str, _encode(value)), 0.0
    beside, number = split
    return (type(number), "" if beside is None else _encode(beside)), number


def _encode(value: Any) -> str:
    """The value as JSON; what has none is kept as text."""
    return json.dumps(value, default=str)


def _is_exact(value: Any) -> TypeGuard[int | float]:
    """Whether it is a number, not a boolean, that a float holds exactly."""
    return type(value) in (int, float) and abs(value) <= _MAX_EXACT


def _join(form: _Form, number: float) -> Any:
    kind, beside = form
    if kind is str:
        return json.loads(beside)
    return {"value": kind(number), **json.loads(beside)} if beside else kind(number)
