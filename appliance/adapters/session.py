"""The HTTP session of all adapters, opened when the first of them asks for something."""

from __future__ import annotations

from types import TracebackType
from typing import Any


class LateSession:
    """A `base.Session` from entering the context to leaving it. A hub without HTTP adapters needs no HTTP client."""

    def __init__(self) -> None:
        self._session: Any = None

    async def __aenter__(self) -> LateSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    @property
    def request(self) -> Any:
        """As that of `aiohttp.ClientSession`."""
        return self._open().request

    @property
    def ws_connect(self) -> Any:
        """As that of `aiohttp.ClientSession`."""
        return self._open().ws_connect

    def _open(self) -> Any:
        if self._session is None:
            from appliance.adapters.http import open_session

            self._session = open_session()
        return self._session
