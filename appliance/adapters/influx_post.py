"""Sends the history to InfluxDB over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from appliance.adapters.answer_text import one_line
from appliance.adapters.redaction import Redaction
from appliance.clock import Clock
from appliance.imports import import_ahead
from appliance.tables.addresses import server_of

MAX_ANSWER_BYTES = 800
"""Maximum number of bytes that are read from a server's error message."""


class LinePost:
    """Posts lines to one address. The first request opens the session.

    A token of one word is sent in InfluxDB's form, `Token …`. A token of two words already contains its scheme, such
    as `Bearer …`.
    """

    def __init__(self, open_session: Callable[[], Any], clock: Clock, url: str, token: str | None) -> None:
        self._address = server_of(url)
        self._path = url.removeprefix(self._address) or "/"
        self._token = token
        self._redact = Redaction([token] if token else [])
        self._open_session = open_session
        self._clock = clock
        self._http: Any = None

    async def __call__(self, body: bytes) -> tuple[int, str]:
        """Return the status and the text of the answer, with the token removed. Raise `AdapterFailed` if there is
        no answer."""
        if self._http is None:
            await import_ahead(["appliance.adapters.device_http.client"])
            from appliance.adapters.device_http.access import HttpAccess
            from appliance.adapters.device_http.client import HttpClient

            scheme = "" if self._token is None or " " in self._token else "Token "
            headers = {} if self._token is None else {"Authorization": f"{scheme}{self._token}"}
            self._http = HttpClient(self._open_session(), self._address, self._clock, HttpAccess(headers=headers))
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        response = await self._http.exchange("POST", self._path, headers=headers, data=body)
        text = self._redact(response.body[:MAX_ANSWER_BYTES].decode(errors="replace"))
        return response.status, one_line(text)
