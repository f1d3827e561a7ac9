"""Publishes the devices of one adapter, and their events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from appliance.adapters.health_publisher import HealthPublisher
from appliance.adapters.poll_reading import PollReading
from appliance.clock import Clock
from appliance.event_loop import in_steps
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.model import Device, Observation, Report
from appliance.home.registry import Registry
from appliance.home.values import Value

MAX_OBSERVATIONS_AT_ONCE, MAX_ATTRIBUTES_AT_ONCE = 5, 200
"""Maximum numbers of devices, and of their attributes, that are published in one part of a report. A device with more
attributes is a part of its own."""


class Publisher(HealthPublisher):
    """Publishes the data and health of one adapter. No call blocks. Invalid values are dropped and logged once.

    `on_removed` is called with the id of each removed device.
    """

    def __init__(self, name: str, registry: Registry, bus: Bus, clock: Clock) -> None:
        super().__init__(name, registry, bus, clock)
        self.on_removed: Callable[[str], None] | None = None
        self._readings: list[PollReading] = []

    @contextmanager
    def reading(self) -> Iterator[PollReading]:
        """Yield a `PollReading` for the time from a poll's request to its answer. Pass this object to `report_parts`
        with the poll's report.

        Data that is published during the poll is newer than the poll, so the report does not overwrite it.
        """
        reading = PollReading()
        self._readings.append(reading)
        try:
            yield reading
        finally:
            self._readings.remove(reading)

    async def full_list(self, observations: Iterable[Observation], present: Iterable[str] = ()) -> None:
        """Publish the list of all devices: these observations, and the unreadable devices in `present`. All devices
        that are not in the list are removed, in steps."""
        await in_steps(self._clock, self.full_list_parts(observations, present))

    def full_list_parts(self, observations: Iterable[Observation], present: Iterable[str] = ()) -> Iterator[None]:
        """Publish like `full_list`. Between two parts of the work, other tasks can run."""
        seen = tuple(observations)
        ids = frozenset({*present, *(each.device_id for each in seen)})
        return self.report_parts(Report(adapter=self.name, present=ids, observations=seen))

    def device(self, observation: Observation) -> None:
        """Publish a complete device, known or new."""
        self._publish_part((observation,))

    def removed(self, device_id: str) -> None:
        """Publish that this device no longer exists. An unknown device is ignored."""
        for each in self._readings:
            each.record_device(device_id)
        self._registry.remove(self.name, device_id)
        if self.on_removed is not None:
            self.on_removed(device_id)

    def report(self, report: Report) -> None:
        """Publish observations of some or all devices."""
        for _ in self.report_parts(report):
            pass

    def report_parts(self, report: Report, reading: PollReading | None = None) -> Iterator[None]:
        """Publish like `report`, in parts. Between two parts, other tasks can run. If the observations come from a
        poll, pass the poll's `reading`."""
        part: list[Observation] = []
        attributes = 0
        for each in report.observations:
            attributes += len(each.attributes)
            if part and (len(part) == MAX_OBSERVATIONS_AT_ONCE or attributes > MAX_ATTRIBUTES_AT_ONCE):
                self._publish_part(tuple(part), reading)
                yield
                part, attributes = [], len(each.attributes)
            part.append(each)
        self._publish_part(tuple(part), reading)
        if report.present is None:
            return
        present = (report if reading is None else reading.without_older(report, self._registry)).present or ()
        for device_id in [each for each in self._registry.ids_of(self.name) if each not in present]:
            yield
            if reading is None or not reading.has_device(device_id):
                self.removed(device_id)

    def _publish_part(self, observations: tuple[Observation, ...], reading: PollReading | None = None) -> None:
        report = Report(adapter=self.name, observations=observations)
        if reading is not None:
            report = reading.without_older(report, self._registry)
        for each in self._readings:
            each.record_report(report)
        self._registry.apply(report)

    def attributes(self, device_id: str, attributes: Mapping[str, Value], at: datetime | None = None) -> None:
        """Publish some attributes of a known device, which changed now or at the given time, and leave its other
        attributes unchanged."""
        for each in self._readings:
            each.record_attributes(device_id, [*attributes, "state"])
        self._registry.update_attributes(self.name, device_id, attributes, at)

    def availability(self, device_id: str, *, is_available: bool) -> None:
        """Publish whether the bridge or broker reaches this device. The state of an unreachable device becomes
        `unavailable`."""
        for each in self._readings:
            each.record_attributes(device_id, ["state"])
        self._registry.set_availability(self.name, device_id, is_available=is_available)

    def availability_parts(self, device_ids: Iterable[str], *, is_available: bool) -> Iterator[None]:
        """Publish the availability of several devices, one per step."""
        for device_id in device_ids:
            self.availability(device_id, is_available=is_available)
            yield

    def list_devices(self) -> dict[str, Device]:
        """Return the adapter's devices by id, with their current state. Right after a restart, the current state
        is the stored state."""
        return {each.id: each for each in self._registry.list_devices() if each.metadata.source == self.name}

    def count_devices(self) -> int:
        """Return the number of the adapter's devices."""
        return len(self._registry.ids_of(self.name))

    def find(self, device_id: str) -> Device | None:
        """Return the adapter's device with its current state, or None."""
        found = self._registry.find_device(device_id)
        return None if found is None or found.metadata.source != self.name else found

    def event(self, device_id: str, event: str, data: Mapping[str, Value] | None = None) -> None:
        """Publish an event of the device. Two equal calls publish two events."""
        self._registry.publish_event(self.name, device_id, event, data or {})

    def dropped(self, device_id: str, attribute: str, reason: str) -> None:
        """Publish an unusable value, for `GET /adapters/{id}`."""
        event = events.ObservationDropped(adapter=self.name, device_id=device_id, attribute=attribute, reason=reason)
        self._bus.publish(event)

    def drop_ended(self, device_id: str, attribute: str) -> None:
        """Publish that an attribute is usable again."""
        self._bus.publish(events.DropEnded(adapter=self.name, device_id=device_id, attribute=attribute))
