"""An HTTP client that records its requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from appliance.adapters.device_http.client import HttpClient
from appliance.adapters.device_http.session import DeviceSession
from appliance.clock import Clock


class RecordingClient(HttpClient):
    """Records each request with its time. Before each request, an action of the test runs.

    If the base class repeats a request, the request is recorded only once.
    """

    def __init__(self, session: DeviceSession, address: str, clock: Clock) -> None:
        super().__init__(session, address, clock)
        self.sent: list[tuple[float, str, str]] = []
        self.before: Callable[[int, str], None] = lambda number, method: None
        """An action of the test, which is called with the request's number, beginning at 1, and the request's
        method."""

    async def request(self, method: str, path: str, **more: Any) -> bytes:
        self.sent.append((self._clock.monotonic(), method, path))
        self.before(len(self.sent), method)
        return await super().request(method, path, **more)
