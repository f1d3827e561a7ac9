"""`ctx:http` of a kind in Lua: what a file may ask for, and the response as it gets it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

import orjson
from msgspec import Struct

from appliance.adapters.lua_kinds.libraries import compact_json
from appliance.adapters.url_paths import url_path
from appliance.errors import Invalid
from appliance.tables.checks import LUA, is_number, nearest, number_within, shown, string
from appliance.tables.fields import Field, Fields, Findings, Table

MAX_TIMEOUT_SECS, DEFAULT_TIMEOUT_SECS = 300.0, 5.0
MAX_BODY_BYTES = 1 << 20
"""Bytes of a response that are read."""

HTTP_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS")
OWN_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"}
    | {"accept-encoding", "proxy-authorization", "proxy-connection", "keep-alive"}
)
"""Headers that the hub alone sets, in lower case."""

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_BAD_LINE = re.compile(r"[\0-\x1f\x7f]")


class WebRequest(Struct, frozen=True, kw_only=True):
    """One request, checked. `origin` is the name of a further one, empty for the section's own `base_url`."""

    method: str
    path: str
    origin: str = ""
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    json: Any = None
    form: Mapping[str, str] | None = None
    body: bytes | None = None
    timeout_secs: float = DEFAULT_TIMEOUT_SECS

    @property
    def is_reading(self) -> bool:
        """Whether it changes nothing, and so may be repeated."""
        return self.method in ("GET", "HEAD", "OPTIONS")


class WebResponse(Struct, frozen=True, kw_only=True):
    """One response of any status. Names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    """Does requests of one section."""

    async def exchange(self, request: WebRequest) -> WebResponse:
        """The response. Raises `Invalid` for an origin that there is not, `Unreachable`, and `BadAnswer`."""


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
        raise Invalid(f"must be a table of texts, not {shown(value, LUA)}")
    return {name: _text(each) for name, each in value.items()}


def _bytes(value: Any) -> bytes:
    """Bytes, each as the character of its number, which is how they cross to and from Lua."""
    return string(value).encode("latin-1")


def _method(value: Any) -> str:
    text = string(value).upper()
    if text not in HTTP_METHODS:
        near = nearest(text, HTTP_METHODS)
        raise Invalid(f"must be one of {', '.join(HTTP_METHODS)}{f'; did you mean {near}' if near else ''}")
    return text


def _headers(value: Any) -> Mapping[str, str]:
    found = _texts(value)
    for name, text in found.items():
        if _HEADER_NAME.fullmatch(name) is None:
            raise Invalid(f"holds {shown(name)}, which is no name of a header")
        if name.lower() in OWN_HEADERS:
            raise Invalid(f"holds {name}, which the hub sets itself")
        if _BAD_LINE.search(text):
            raise Invalid(f"must state the header {name} as a text of one line")
    return found


_FIELDS: Fields = {
    "method": Field(_method, "GET"),
    "path": Field(url_path),
    "query": Field(_texts, required=False),
    "headers": Field(_headers, required=False),
    "json": Field(lambda value: value, required=False),
    "form": Field(_texts, required=False),
    "body": Field(_bytes, required=False),
    "timeout_secs": Field(number_within(0.05, MAX_TIMEOUT_SECS), required=False),
    "origin": Field(string, ""),
}


def read_request(raw: Any, secs: float = DEFAULT_TIMEOUT_SECS) -> WebRequest:
    """The request that `ctx:http` was given, for so many seconds at most; raises `Invalid`, which names the field."""
    findings = Findings(LUA)
    table = Table(raw if isinstance(raw, Mapping) else {}, findings)
    found = table.read(_FIELDS)
    table.refuse_others("a field of a request")
    if findings.faults:
        raise Invalid(f"ctx:http: {findings.faults[0]}")
    if sum(found[name] is not None for name in ("json", "form", "body")) > 1:
        raise Invalid("ctx:http: a request has one of json, form and body")
    filled = {name: found[name] or {} for name in ("query", "headers")}
    timeout_secs = min(found["timeout_secs"] or secs, secs)
    return WebRequest(**{**found, **filled, "timeout_secs": timeout_secs})


def for_lua(response: WebResponse) -> dict[str, Any]:
    """The response as `ctx:http` returns it, for `orjson.dumps`: `json` is there where the body is JSON."""
    answer: dict[str, Any] = {
        "status": response.status,
        "headers": dict(response.headers),
        "body": response.body.decode("latin-1"),
    }
    with suppress(Invalid):
        answer["json"] = orjson.Fragment(compact_json(response.body))
    return answer
