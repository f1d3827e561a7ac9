"""Publishes the values that the catalog does not allow."""

from __future__ import annotations

from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.observations import Dropped

MAX_REPORTED_DROPS = 1000
"""Maximum number of dropped values to publish."""


class DroppedValues:
    """The published attributes by adapter and device. Each attribute is published once."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._published: dict[tuple[str, str], set[str]] = {}

    def publish(self, adapter: str, device_id: str, dropped: Dropped) -> None:
        for attribute, reason in dropped.items():
            published = self._published.get((adapter, device_id), ())
            if attribute not in published and sum(map(len, self._published.values())) < MAX_REPORTED_DROPS:
                self._published[adapter, device_id] = {*published, attribute}
                event = events.ObservationDropped(
                    adapter=adapter, device_id=device_id, attribute=attribute, reason=reason
                )
                self._bus.publish(event)

    def forget(self, adapter: str, device_id: str) -> None:
        self._published.pop((adapter, device_id), None)
