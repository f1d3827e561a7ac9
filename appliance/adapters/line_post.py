"""Requests that bring line protocol to a server, over the adapters' HTTP session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from appliance.clock import Clock
from appliance.late import import_ahead
from appliance.tables.addresses import server_of

MAX_ANSWER_CHARS = 200
"""Of what a server says to a refusal."""


class LinePost:
    """Posts lines to one address; `open_session` is asked with the first.

    A token of one word is sent as InfluxDB wants it, `Token …`; one of two states its scheme, `Bearer …`.
    """

    def __init__(self, url: str, token: str | None, open_session: Callable[[], Any], clock: Clock) -> None:
        self._address = server_of(url)
        self._path = url.removeprefix(self._address) or "/"
        self._token = token
        self._open_session = open_session
        self._clock = clock
        self._http: Any = None

    async def __call__(self, body: bytes) -> tuple[int, str]:
        """The status of the answer, and what it says, without the token. Raises `AdapterFailed` where none came."""
        if self._http is None:
            await import_ahead(["appliance.adapters.device_http"])
            from appliance.adapters.device_http import HttpClient
            from appliance.adapters.http_access import HttpAccess

            scheme = "" if self._token is None or " " in self._token else "Token "
            headers = {} if self._token is None else {"Authorization": f"{scheme}{self._token}"}
            self._http = HttpClient(self._open_session(), self._address, self._clock, HttpAccess(headers=headers))
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        response = await self._http.exchange("POST", self._path, headers=headers, data=body)
        text = response.body[: 4 * MAX_ANSWER_CHARS].decode(errors="replace")[:MAX_ANSWER_CHARS]
        said = " ".join(text.split())
        return response.status, said if self._token is None else said.replace(self._token, "***")
