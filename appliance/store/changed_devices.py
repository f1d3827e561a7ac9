"""Decides which changed devices the next flush writes, and which changes wait for a complete flush."""

from __future__ import annotations

from collections.abc import Collection

from appliance.home.model import ONLINE, Device
from appliance.home.values import number_in
from appliance.shrinking import shrunk


class ChangedDevices:
    """The ids of the devices with changes that are not written yet.

    A device waits for the next complete flush if only its details have changed, or only numbers whose earlier values
    have already been written. Every other change waits for the next flush. A change of `state` together with
    numbers does not count, because `state` is written only at the stop.
    """

    def __init__(self) -> None:
        self._due: set[str] = set()
        self._minor: set[str] = set()
        """Devices whose new numbers or details wait for the next complete flush."""
        self._has_numbers: set[str] = set()
        """Devices whose numbers were written by the last complete flush or after it."""
        self._offline: set[str] = set()
        self._removed: set[str] = set()
        """Removed devices whose stored values the next flush deletes. Other absent devices are absent only because
        their section was stopped."""

    def note_change(self, device: Device, changed: Collection[str]) -> None:
        self._removed.discard(device.id)
        stored = set(changed) - {"state"}
        is_measured = bool(stored) and all(number_in(device.attributes.get(name)) is not None for name in stored)
        waits = is_measured and device.id in self._has_numbers
        (self._minor if waits else self._due).add(device.id)
        if is_measured:
            self._has_numbers.add(device.id)
        if device.attributes.get("state") == ONLINE:
            self._offline.discard(device.id)
        else:
            self._offline.add(device.id)

    def note_details(self, device_id: str) -> None:
        """Note that the device's description has changed. The next complete flush writes the device."""
        self._minor.add(device_id)

    def put(self, device_ids: Collection[str]) -> None:
        """Write the devices with the next flush."""
        self._due.update(device_ids)

    def put_offline(self) -> None:
        """Write all devices that are offline with the next flush."""
        self._due |= self._offline

    def put_minor(self) -> None:
        """Write all minor changes with the next flush, which is complete."""
        self._due |= self._minor
        self._has_numbers, self._minor = self._minor, set()

    def note_removal(self, device_id: str, *, is_deleted: bool) -> None:
        """Note that a device was removed. If `is_deleted` is true, the next flush deletes its stored values."""
        for name in ("_due", "_minor", "_has_numbers", "_offline"):
            ids: set[str] = getattr(self, name)
            if device_id in ids:
                ids.remove(device_id)
                setattr(self, name, shrunk(ids))
        if is_deleted:
            self._removed.add(device_id)
            self._due.add(device_id)

    def is_offline(self, device_id: str) -> bool:
        return device_id in self._offline

    def is_removed(self, device_id: str) -> bool:
        return device_id in self._removed

    def list_all(self) -> set[str]:
        """Return the devices of the next complete flush."""
        return self._due | self._minor

    def take_due(self) -> set[str]:
        """Return the devices of the next flush, and remove them from the waiting devices."""
        due, self._due = self._due, set()
        return due

    def note_flush(self) -> None:
        """Note that the last flush is stored. Devices that were removed during the flush wait for the next flush."""
        self._removed &= self._due

    def discard(self, device_ids: set[str]) -> None:
        self._due -= device_ids
        self._minor -= device_ids
