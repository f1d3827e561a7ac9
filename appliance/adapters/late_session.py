"""The HTTP session of adapters and history. The HTTP client is imported, and the session opened, at the first use."""

from __future__ import annotations

from typing import Any


class LateSession:
    """Opens the session at the first `open`. Leaving the context closes the session."""

    def __init__(self) -> None:
        self._session: Any = None

    async def __aenter__(self) -> LateSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    def open(self) -> Any:
        if self._session is None:
            from appliance.adapters.device_http.session import DeviceSession

            self._session = DeviceSession()
        return self._session
