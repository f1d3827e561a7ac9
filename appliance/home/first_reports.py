"""Finds the attributes that a restored device reports for the first time since the hub's start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from appliance.home.model import Device, Observation

NO_ATTRIBUTES: frozenset[str] = frozenset()


class Sent(NamedTuple):
    """The attributes that a report contains.

    - `observed`: the device has sent them since the hub's start.
    - `pushed`: the device has just sent them by itself.
    - `kept`: the report repeats their stored values.
    """

    observed: frozenset[str] = NO_ATTRIBUTES
    pushed: frozenset[str] = NO_ATTRIBUTES
    kept: frozenset[str] = NO_ATTRIBUTES


NOTHING_SENT = Sent()


class Noted(NamedTuple):
    """The attributes of a report that follow stored values.

    - `first`: the device reports them for the first time since the hub's start.
    - `baseline`: their new value is only a baseline, because the earlier value may be outdated.
    - `doubtful`: their first value since the hub's start, while the stored value is doubtful.
    """

    first: frozenset[str] = NO_ATTRIBUTES
    baseline: frozenset[str] = NO_ATTRIBUTES
    doubtful: frozenset[str] = NO_ATTRIBUTES


NOTHING_NOTED = Noted()


class _Missing(Struct):
    """Stored attributes of a restored device.

    - `unobserved`: the device has not sent them since the hub's start.
    - `unreported`: no report has contained them, not even with the stored value.
    - `doubtful`: the stored value may be older than the last value before the hub's start, and the device has not
      sent a value since; or the value changed while no automation could run.
    """

    unobserved: frozenset[str]
    unreported: frozenset[str]
    doubtful: frozenset[str]


class FirstReports:
    """The missing attributes of restored devices. A device is known until it has sent all its stored attributes, and
    a value for each doubtful attribute."""

    def __init__(self) -> None:
        self._missing: dict[str, _Missing] = {}
        self._doubtful_if_restored: dict[str, frozenset[str]] = {}

    def expect(self, device_id: str, attributes: Iterable[str], *, are_doubtful: bool) -> None:
        """Wait for these stored attributes of a restored device. If `are_doubtful` is false, only attributes that
        were doubtful when the device was last present are doubtful."""
        names = frozenset(attributes)
        before = self._doubtful_if_restored.pop(device_id, NO_ATTRIBUTES)
        self._missing[device_id] = _Missing(names, names, names - {"state"} if are_doubtful else names & before)

    def doubt(self, device_id: str, attributes: frozenset[str]) -> None:
        """Make these attributes doubtful until the device sends them again, or `end_doubt` returns them."""
        missing = self._missing.setdefault(device_id, _Missing(NO_ATTRIBUTES, NO_ATTRIBUTES, NO_ATTRIBUTES))
        missing.doubtful |= attributes - {"state"}

    def end_doubt(self, device: Device) -> frozenset[str]:
        """End the doubt about the present values that the device has sent since the hub's start. Return their
        attributes."""
        missing = self._missing.get(device.id)
        if missing is None:
            return NO_ATTRIBUTES
        sent = (missing.doubtful - missing.unobserved).intersection(device.attributes)
        missing.doubtful -= sent
        self._forget_complete(device.id, missing)
        return sent

    def forget(self, device_id: str, *, is_kept: bool = False) -> None:
        """Forget a removed device. If `is_kept` is true, its values remain stored, and doubtful values remain
        doubtful."""
        missing = self._missing.pop(device_id, None)
        self._doubtful_if_restored.pop(device_id, None)
        if is_kept and missing is not None and missing.doubtful:
            self._doubtful_if_restored[device_id] = missing.doubtful

    def begin(self, doubtful: Mapping[str, Iterable[str]]) -> None:
        """Forget all devices. Once the devices in `doubtful` are restored, these attributes are doubtful."""
        self._missing.clear()
        self._doubtful_if_restored = {device_id: frozenset(names) for device_id, names in doubtful.items()}

    def list_doubtful(self) -> dict[str, list[str]]:
        """Return the doubtful attributes by device, including devices that are not restored."""
        restored = {device_id: missing.doubtful for device_id, missing in self._missing.items() if missing.doubtful}
        return {device_id: sorted(names) for device_id, names in {**self._doubtful_if_restored, **restored}.items()}

    def read(self, seen: Observation) -> Sent:
        """Return the attributes in the observation. If the device has sent all stored attributes, return nothing."""
        missing = self._missing.get(seen.device_id)
        if missing is None:
            return NOTHING_SENT
        unobserved = missing.unobserved | missing.doubtful
        observed = unobserved - seen.kept if seen.is_available else unobserved & seen.pushed
        return Sent(observed, seen.pushed, seen.kept)

    def note(self, before: Device, after: Device, changed: frozenset[str], sent: Sent) -> Noted:
        """Note a report of the device."""
        missing = self._missing.get(before.id)
        if missing is None:
            return NOTHING_NOTED
        baseline = NO_ATTRIBUTES
        if missing.unobserved:
            baseline = frozenset(name for name in changed if name in missing.unobserved or not before.known(name))
        first = missing.unreported & (sent.observed | sent.kept)
        doubtful = frozenset(name for name in missing.doubtful & sent.observed if name in after.attributes)
        missing.unobserved -= sent.observed
        missing.unreported -= first
        missing.doubtful -= doubtful
        self._forget_complete(before.id, missing)
        return Noted(first, baseline - sent.pushed, doubtful)

    def _forget_complete(self, device_id: str, missing: _Missing) -> None:
        if not missing.unobserved and not missing.doubtful:
            del self._missing[device_id]
