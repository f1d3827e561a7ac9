"""What was said of devices while a poll was under way: the poll's answer is older and does not undo it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from appliance.home.model import Observation, Report
from appliance.home.registry import UNAVAILABLE, Registry


class Reading:
    """One poll from its question to its answer, and what its adapter published meanwhile."""

    def __init__(self) -> None:
        self._devices: set[str] = set()
        self._attributes: dict[str, set[str]] = {}

    def note(self, device_id: str, attributes: Iterable[str]) -> None:
        """Note that these attributes of the device were said meanwhile."""
        self._attributes.setdefault(device_id, set()).update(attributes)

    def note_report(self, report: Report, registry: Registry) -> None:
        """Note that devices were said in full meanwhile, or gone. To be called before the report is applied."""
        self._devices |= {each.device_id for each in report.observations}
        if report.present is not None:
            self._devices |= {each for each in registry.ids_of(report.adapter) if each not in report.present}

    def without_older(self, report: Report, registry: Registry) -> Report:
        """The poll's report, with what was said meanwhile in place of what it read."""
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
        said = self._attributes.get(seen.device_id, set())
        devices = registry.find_devices([seen.device_id])
        attributes = devices[0].attributes if devices else {}
        shown = {key: value for key, value in attributes.items() if key in said}
        is_available = seen.is_available if (state := shown.pop("state", None)) is None else state != UNAVAILABLE
        return replace(seen, attributes={**seen.attributes, **shown}, is_available=is_available)
