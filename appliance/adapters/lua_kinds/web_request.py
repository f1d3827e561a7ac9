"""The requests of `ctx:http`, and their responses for Lua."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

import orjson
from msgspec import Struct

from appliance.adapters.access_settings import check_header, url_path
from appliance.adapters.device_http.client import HttpResponse
from appliance.adapters.device_json import load_json
from appliance.adapters.lua_kinds.json_and_xml import compact_json
from appliance.errors import Invalid
from appliance.tables.checks import LUA, format_value, is_number, number_within, one_of, string
from appliance.tables.fields import Field, Fields, Findings, Table

MAX_TIMEOUT_SECS, DEFAULT_TIMEOUT_SECS = 300.0, 5.0

HTTP_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS")
OWN_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"}
    | {"accept-encoding", "proxy-authorization", "proxy-connection", "keep-alive"}
)
"""Headers that only the hub may set, in lower case."""


class WebRequest(Struct, frozen=True, kw_only=True):
    """A checked request. `origin` is a name in `origins`, or empty for `base_url`."""

    method: str
    path: str
    origin: str = ""
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    json: Any = None
    form: Mapping[str, str] | None = None
    body: bytes | None = None
    timeout_secs: float = DEFAULT_TIMEOUT_SECS
    repeat: bool | None = None
    """Whether an unanswered request is sent again. If `repeat` is None, `is_reading` determines the value."""

    @property
    def is_reading(self) -> bool:
        return self.method in ("GET", "HEAD", "OPTIONS")


class Transport(Protocol):
    """Sends the requests of one section."""

    async def exchange(self, request: WebRequest) -> HttpResponse:
        """Return the response. Raise `Invalid` for an unknown origin, and otherwise `Unreachable` or `BadAnswer` on
        failure."""


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_number(value):
        return str(int(value)) if value == int(value) else repr(value)
    return string(value)


def _texts(value: Any) -> Mapping[str, str]:
    if value in ([], {}):
        return {}
    if not isinstance(value, Mapping):
        raise Invalid(f"must be a table of texts, not {format_value(value, LUA)}")
    return {name: _text(each) for name, each in value.items()}


def _bytes(value: Any) -> bytes:
    """Convert a Lua string to bytes. Each character of the string represents one byte."""
    return string(value).encode("latin-1")


def _headers(value: Any) -> Mapping[str, str]:
    found = _texts(value)
    for name, text in found.items():
        check_header(name, text)
        if name.lower() in OWN_HEADERS:
            raise Invalid(f"contains {name}, which only the hub can set")
    return found


_FIELDS: Fields = {
    "method": Field(lambda value: one_of(*HTTP_METHODS)(string(value).upper()), "GET"),
    "path": Field(url_path),
    "query": Field(_texts, required=False),
    "headers": Field(_headers, required=False),
    "json": Field(lambda value: value, required=False),
    "form": Field(_texts, required=False),
    "body": Field(_bytes, required=False),
    "timeout_secs": Field(number_within(0.05, MAX_TIMEOUT_SECS), required=False),
    "origin": Field(string, ""),
}


def read_request(raw: Any, secs: float = DEFAULT_TIMEOUT_SECS, *, repeat: bool | None = None) -> WebRequest:
    """Check the argument of `ctx:http`. `secs` is the maximum time limit. Raise `Invalid` with the name of the wrong
    field."""
    findings = Findings(LUA)
    table = Table(raw if isinstance(raw, Mapping) else {}, findings)
    found = table.read(_FIELDS)
    table.refuse_others("a field of a request")
    if findings.faults:
        raise Invalid(f"ctx:http: {findings.faults[0]}")
    if sum(found[name] is not None for name in ("json", "form", "body")) > 1:
        raise Invalid("ctx:http: a request can have only one of json, form, and body")
    filled = {name: found[name] or {} for name in ("query", "headers")}
    timeout_secs = min(found["timeout_secs"] or secs, secs)
    return WebRequest(**{**found, **filled, "timeout_secs": timeout_secs, "repeat": repeat})


def for_lua(response: HttpResponse) -> dict[str, Any]:
    """Return the response as the result of `ctx:http`. If the body is JSON, the result includes `json`."""
    answer: dict[str, Any] = {
        "status": response.status,
        "headers": dict(response.headers),
        "body": response.body.decode("latin-1"),
    }
    if response.moved_to is not None:
        answer["moved_to"] = response.moved_to
    with suppress(Invalid):
        answer["json"] = orjson.Fragment(load_json(response.body, compact_json))
    return answer
