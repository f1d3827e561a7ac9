"""An attribute's values over time, stored in arrays of numbers, so that an entry needs only 18 bytes."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from sys import getsizeof
from typing import Any, Self, TypeGuard

MAX_ENTRIES = 8192
"""Maximum number of entries per series. Because of this limit, thinning is fast, and a form index fits in two
bytes."""

SERIES_BYTES = 480
"""Memory overhead of a series in bytes: its objects, table entries, and a short first form."""

ENTRY_BYTES = 18
"""Memory of an entry in bytes: the time, the number, and a share of the space that is reserved for later entries."""

FORM_BYTES = 150
"""Memory overhead of a value form in bytes, without its text."""

MAX_LISTED_FORMS = 8
"""Maximum number of forms without an index. An index speeds up the search in longer lists of forms."""

MAX_SHARED_CHARS = 40
"""Maximum length of a word or unit whose form is shared by all series."""

MINUTE_MS, HOUR_MS = 60_000, 3_600_000


_MAX_EXACT = 1 << 53
"""The largest integer up to which floats are exact."""


ValueParts = Mapping[str, Any] | None
"""The parts of a value without its number (for example, the unit). None means that the value is only a number."""

_FORM_TYPES: Mapping[str, type[Any]] = {"int": int, "float": float, "str": str}

_Form = tuple[type[Any], str]
"""The form of a value. For a value with a number, the form contains the number's type, and the other parts as JSON.
For other values, the form contains `str` and the value as JSON."""


class Series:
    """Entries sorted by time. Times are in milliseconds since 1970. The value None means that the attribute was
    missing.

    One array contains times and numbers alternately. If the entries have different forms, a second array contains the
    form index of each entry.
    """

    __slots__ = ("_columns", "_forms", "_forms_bytes", "_forms_of", "_index_of")

    def __init__(self) -> None:
        self._columns = array("d")
        self._forms: list[_Form] = []
        self._forms_of: array[int] | None = None
        self._index_of: dict[_Form, int] | None = None
        self._forms_bytes = 0

    def __len__(self) -> int:
        return len(self._columns) // 2

    @property
    def times(self) -> array[float]:
        return self._columns[::2]

    @property
    def size(self) -> int:
        """Return the memory of the series in bytes, including its entries and forms."""
        return SERIES_BYTES + ENTRY_BYTES * (len(self._columns) // 2) + self._forms_bytes

    def append(self, at: int, value: Any) -> None:
        """Add an entry. If the clock was set back, earlier entries with later times get the new entry's time."""
        columns = self._columns
        later = len(columns) - 2
        while later >= 0 and columns[later] > at:
            columns[later] = at
            later -= 2
        form, number = _split(value)
        self._add_form(form)
        columns.append(at)
        columns.append(number)

    def time_at(self, index: int) -> int:
        return int(self._columns[2 * index])

    def value_at(self, index: int) -> Any:
        return _join(self._form_at(index), self._columns[2 * index + 1])

    def first_from(self, at: int) -> int | None:
        """Return the index of the first entry at or after this time, or None."""
        index = bisect_left(self.times, at)
        return index if index < len(self) else None

    def last_until(self, at: int) -> int | None:
        """Return the index of the last entry at or before this time, or None."""
        index = bisect_right(self.times, at) - 1
        return None if index < 0 else index

    def list_indices(self, first_ms: int, last_ms: int, step_ms: int) -> Iterator[int]:
        """Yield the indices of entries between the inclusive times, newest first. Yield only the last entry of each
        `step_ms`, or every entry if `step_ms` is 0."""
        bucket, times = None, self.times
        for index in range(bisect_right(times, last_ms) - 1, bisect_left(times, first_ms) - 1, -1):
            if step_ms == 0 or bucket != times[index] // step_ms:
                yield index
            bucket = times[index] // step_ms if step_ms else None

    def thin(self, target: int) -> None:
        """Reduce the series to `target` entries: all of the newest entries, one per minute of older entries, and one
        per hour of the oldest entries."""
        recent, times = target // 12, self.times
        edge = len(times) - max(recent, 1)
        by_minute = _last_of_each(times, range(edge), MINUTE_MS)
        split = max(0, len(by_minute) - recent)
        by_hour = _last_of_each(times, by_minute[:split], HOUR_MS)
        room = target - (len(times) - edge) - (len(by_minute) - split)
        oldest = by_hour[-room:] if room > 0 else []
        self._keep([*oldest, *by_minute[split:], *range(edge, len(times))])

    def pack(self) -> tuple[Any, ...]:
        """Return the entries as values that `marshal` supports."""
        forms = [(form.__name__, parts) for form, parts in self._forms]
        forms_of = None if self._forms_of is None else self._forms_of.tobytes()
        return self._columns.tobytes(), forms, forms_of, self._forms_bytes

    def unpack(self, packed: tuple[Any, ...]) -> Self:
        """Replace the entries with the result of `pack`."""
        columns, forms, forms_of, self._forms_bytes = packed
        self._columns = array("d", columns)
        self._forms = [(_FORM_TYPES[form], parts) for form, parts in forms]
        self._forms_of = None if forms_of is None else array("H", forms_of)
        return self

    def copy(self) -> Series:
        return Series().unpack(self.pack())

    def _keep(self, indices: list[int]) -> None:
        columns, forms = self._columns, [self._form_at(index) for index in indices]
        self._columns = array("d")
        self._forms, self._forms_of, self._index_of, self._forms_bytes = [], None, None, 0
        for index, form in zip(indices, forms, strict=True):
            self._add_form(form)
            self._columns.extend(columns[2 * index : 2 * index + 2])

    def _form_at(self, index: int) -> _Form:
        return self._forms[0 if self._forms_of is None else self._forms_of[index]]

    def _add_form(self, form: _Form) -> None:
        """Store the form of the next entry."""
        forms, forms_of = self._forms, self._forms_of
        if forms_of is None:
            if len(forms) == 1 and forms[0] == form:
                return
            if forms:
                forms_of = self._forms_of = array("H", bytes(2 * len(self)))
        index = self._find_form(form)
        if index == len(forms):
            forms.append(form)
            if index or len(form[1]) > MAX_SHARED_CHARS:
                self._forms_bytes += getsizeof(form[1]) + FORM_BYTES
            if self._index_of is not None:
                self._index_of[form] = index
        if forms_of is not None:
            forms_of.append(index)

    def _find_form(self, form: _Form) -> int:
        """Return the form's index, or the next free index for a new form."""
        forms = self._forms
        if len(forms) <= MAX_LISTED_FORMS:
            return forms.index(form) if form in forms else len(forms)
        if self._index_of is None:
            self._index_of = {each: index for index, each in enumerate(forms)}
        return self._index_of.get(form, len(forms))


def _last_of_each(times: array[float], indices: Iterable[int], step_ms: int) -> list[int]:
    """Return the last index in each period of `step_ms`."""
    return [*{times[index] // step_ms: index for index in indices}.values()]


def split_number(value: Any) -> tuple[ValueParts, int | float] | None:
    """Return a value's number and its other parts. Return None for a value without a number."""
    if _is_exact(value):
        return None, value
    number = value.get("value") if isinstance(value, dict) else None
    if _is_exact(number):
        return {key: each for key, each in value.items() if key != "value"}, number
    return None


def _split(value: Any) -> tuple[_Form, float]:
    if isinstance(value, dict) and len(value) == 2 and _is_exact(number := value.get("value")):
        unit = value.get("unit")
        if type(unit) is str and len(unit) <= MAX_SHARED_CHARS:
            return _unit_form(unit, type(number) is int), number
    if type(value) is str and len(value) <= MAX_SHARED_CHARS:
        return _word_form(value), 0.0
    if (split := split_number(value)) is None:
        return (str, _encode(value)), 0.0
    parts, number = split
    return (type(number), "" if parts is None else _encode(parts)), number


@lru_cache(maxsize=1024)
def _word_form(word: str) -> _Form:
    return str, _encode(word)


@lru_cache(maxsize=1024)
def _unit_form(unit: str, is_whole: bool) -> _Form:
    return int if is_whole else float, _encode({"unit": unit})


_encode = json.JSONEncoder(default=str).encode
"""Returns the value as JSON. Values that JSON cannot represent become text."""


def _is_exact(value: Any) -> TypeGuard[int | float]:
    """Return whether the value is a number that a float represents exactly. Booleans are not numbers."""
    return type(value) in (int, float) and abs(value) <= _MAX_EXACT


def _join(form: _Form, number: float) -> Any:
    kind, parts = form
    if kind is str:
        return json.loads(parts)
    return {"value": kind(number), **json.loads(parts)} if parts else kind(number)
