"""Finds the attributes that a restored device reports for the first time since the hub's start."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

NO_ATTRIBUTES: frozenset[str] = frozenset()


class _Missing(Struct):
    """Stored attributes of a restored device.

    - `unobserved`: the device has not sent them since the hub's start.
    - `unreported`: no report has contained them, not even with the stored value.
    """

    unobserved: frozenset[str]
    unreported: frozenset[str]


class FirstReports:
    """The missing attributes of restored devices. A device is known until it has sent all its stored attributes."""

    def __init__(self) -> None:
        self._missing: dict[str, _Missing] = {}

    def expect(self, device_id: str, attributes: Iterable[str]) -> None:
        """Wait for these stored attributes of a restored device."""
        names = frozenset(attributes)
        self._missing[device_id] = _Missing(names, names)

    def forget(self, device_id: str) -> None:
        self._missing.pop(device_id, None)

    def clear(self) -> None:
        self._missing.clear()

    def find_unobserved(self, device_id: str) -> frozenset[str] | None:
        """Return the attributes that the device has not sent. Return None if the device has sent all attributes."""
        missing = self._missing.get(device_id)
        return None if missing is None else missing.unobserved

    def note(self, device_id: str, observed: frozenset[str], kept: frozenset[str]) -> frozenset[str]:
        """Note that the device sent `observed`, and that its report repeated the stored values of `kept`. Return the
        attributes that are reported for the first time."""
        missing = self._missing.get(device_id)
        if missing is None:
            return NO_ATTRIBUTES
        first = missing.unreported & (observed | kept)
        missing.unobserved -= observed
        missing.unreported -= first
        if not missing.unobserved:
            del self._missing[device_id]
        return first
