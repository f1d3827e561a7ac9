"""The values that a later flush writes to the document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class Overlay:
    """The waiting values by key. The value None removes a key from the document. Minor values wait for a complete
    flush."""

    def __init__(self) -> None:
        self._later: dict[str, Any] = {}
        self._minor: dict[str, Any] = {}
        self._flushing: dict[str, Any] = {}

    def put(self, key: str, value: dict[str, Any] | None, *, is_minor: bool) -> None:
        """Replace the key's waiting value. A minor value waits for the next flush if the earlier value does so."""
        has_due = self.discard(key)
        (self._minor if is_minor and not has_due else self._later)[key] = value

    def discard(self, key: str) -> bool:
        """Remove the key's waiting value. Return whether the value waited for the next flush."""
        self._minor.pop(key, None)
        return self._later.pop(key, self) is not self

    def list_all(self) -> dict[str, Any]:
        return self._minor | self._later

    def is_being_flushed(self, key: str) -> bool:
        return key in self._flushing

    def take_out(self, keys: Iterable[str]) -> dict[str, Any]:
        """Remove and return the values of these keys, including values that are being flushed."""
        waiting = self._flushing | self._minor | self._later
        taken = {key: waiting[key] for key in keys if key in waiting}
        for key in taken:
            self.discard(key)
            self._flushing.pop(key, None)
        return taken

    def begin_flush(self, *, is_complete: bool) -> dict[str, Any]:
        """Return the values to write. If `is_complete` is false, minor values keep waiting."""
        given, self._later = self._later, {}
        if is_complete:
            given, self._minor = self._minor | given, {}
        self._flushing = dict(given)
        return given

    def end_flush(self, *, is_stored: bool) -> None:
        """End the flush. If the values are not stored, keep them for the next flush."""
        if not is_stored:
            self.put_back(self._flushing)
        self._flushing = {}

    def put_back(self, values: Mapping[str, Any]) -> None:
        """Keep these values for the next flush, but do not replace newer values of the same keys."""
        self._later, self._minor = {**values, **self._minor, **self._later}, {}
