"""Prevents a poll from overwriting newer data."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from appliance.home.model import UNAVAILABLE, Observation, Report
from appliance.home.registry import Registry


class PollReading:
    """One poll, from its request to its answer, with the data that the adapter publishes in the meantime."""

    def __init__(self) -> None:
        self._devices: set[str] = set()
        self._attributes: dict[str, set[str]] = {}

    def record_attributes(self, device_id: str, attributes: Iterable[str]) -> None:
        """Record that these attributes were published during the poll."""
        self._attributes.setdefault(device_id, set()).update(attributes)

    def record_device(self, device_id: str) -> None:
        """Record that the device was published in full, or removed, during the poll."""
        self._devices.add(device_id)

    def has_device(self, device_id: str) -> bool:
        """Return whether the device was published in full, or removed, during the poll."""
        return device_id in self._devices

    def record_report(self, report: Report) -> None:
        """Record the devices that a report publishes in full."""
        self._devices |= {each.device_id for each in report.observations}

    def without_older(self, report: Report, registry: Registry) -> Report:
        """Return the poll's report. Readings are replaced with data that was published during the poll."""
        if not self._devices and not self._attributes:
            return report
        known = registry.ids_of(report.adapter)
        kept = tuple(
            self._merged(each, registry) for each in report.observations if each.device_id not in self._devices
        )
        if report.present is None:
            return replace(report, observations=kept)
        present = (report.present - self._devices) | (self._devices & known.keys())
        return replace(report, observations=kept, present=frozenset(present))

    def _merged(self, seen: Observation, registry: Registry) -> Observation:
        device = registry.find_device(seen.device_id)
        if device is None or seen.device_id not in self._attributes:
            return seen
        names = self._attributes[seen.device_id]
        newer = {key: value for key, value in device.attributes.items() if key in names}
        read = {key: value for key, value in seen.attributes.items() if key not in names}
        is_available = seen.is_available if (state := newer.pop("state", None)) is None else state != UNAVAILABLE
        return replace(seen, attributes={**read, **newer}, is_available=is_available)
