"""A read-only meter with a button, connected by a radio link. The hub polls the meter, and the meter pushes
server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

from aiohttp import web

from appliance.adapters.device_http.server_events import ServerEvent
from appliance.adapters.device_json import parse_json
from appliance.adapters.kind import AdapterKind, PolledUrl
from appliance.adapters.polling import PollingAdapter
from appliance.adapters.simulated_device import SimulatedDevice
from appliance.errors import BadAnswer
from appliance.home.model import DeviceKind, Observation, Report
from tests.fakes.event_stream import hold_events
from tests.fakes.patience import until


class MeterAdapter(PollingAdapter):
    has_push = True

    async def poll(self) -> Report:
        values = parse_json(await self.http.request("GET", "/meter"), self.http.address)
        seen = self._observation(values)
        return Report(adapter=self.name, present=frozenset({seen.device_id}), observations=(seen,))

    def open_push(self) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        return self.http.events("/stream", silence_secs=60)

    def receive(self, message: ServerEvent) -> None:
        """Publish a reading, or a press of the button."""
        if message.event == "button":
            self.publish.event(f"{self.name}:meter", message.data)
        else:
            self.publish.device(self._observation(parse_json(message.data, self.http.address)))

    def _observation(self, values: Any) -> Observation:
        try:
            return Observation(
                device_id=f"{self.name}:meter",
                kind=DeviceKind.SENSOR,
                attributes={"power_consumption": {"value": values["watts"], "unit": "W"}},
                name="Meter",
                is_available=values["is_reached"],
                commands=(),
            )
        except (KeyError, TypeError):
            raise BadAnswer(f"{self.http.address} answered with something that is no meter's") from None


class MeterSimulator(SimulatedDevice):
    """A simulated meter. `streams` contains the open event streams."""

    content_type = "application/json"

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, Any] = {"watts": 5, "is_reached": True}
        self.streams: set[web.StreamResponse] = set()

    async def show(self, **values: Any) -> None:
        self.values |= values
        await self._push(f"data: {json.dumps(self.values)}\n\n")

    async def press(self) -> None:
        await self._push("event: button\ndata: single\n\n")

    async def _push(self, text: str) -> None:
        await until(lambda: self.streams)
        for stream in tuple(self.streams):
            await stream.write(text.encode())

    def _routes(self) -> Iterable[web.RouteDef]:
        return [web.get("/meter", self._answer), web.get("/stream", self._stream)]

    async def _answer(self, request: web.Request) -> web.Response:
        return self._json(self.values)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        return await hold_events(request, self.streams)


class Meter(PolledUrl, frozen=True, kw_only=True):
    """An enabled section of this kind."""


class MeterKind(AdapterKind, frozen=True, kw_only=True):
    """The kind, which has no folder."""

    @property
    def adapter_module(self) -> str:
        return __name__

    def simulate(self) -> MeterSimulator:
        return MeterSimulator()


METER = MeterKind(
    name="meter",
    settings=Meter,
    device_kinds=frozenset({DeviceKind.SENSOR}),
    simulated=lambda device: Meter(base_url=device.url, poll_interval_secs=1),
)

build = MeterAdapter.of
