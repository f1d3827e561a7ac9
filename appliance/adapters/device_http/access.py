"""Credentials and certificate checks for the addresses of vendors."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from pathlib import Path

import aiohttp
from aiohttp import ClientMiddlewareType
from msgspec import field

from appliance.adapters.tls import open_tls
from appliance.tables.fields import Redacted


class HttpAccess(Redacted, frozen=True, kw_only=True):
    """The credentials for one address, and its certificate check.

    `token` is sent as a bearer token. `username` and `password` are sent with Basic authentication, or with Digest
    authentication if `is_digest` is true. With https, the certificate must be signed by a trusted authority or by the
    authority in `ca_file`, or must have the SHA-256 `fingerprint` (hexadecimal). `headers` are sent with every
    request.
    """

    HIDDEN = ("password", "token")
    headers: Mapping[str, str] = field(default_factory=dict)
    username: str | None = None
    password: str | None = None
    is_digest: bool = False
    token: str | None = None
    ca_file: Path | None = None
    fingerprint: str | None = None

    def all_headers(self) -> dict[str, str]:
        """Return the headers of every request, including credentials."""
        credentials = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        if self.username is not None and not self.is_digest:
            pair = f"{self.username}:{self.password or ''}".encode()
            credentials = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        return {**self.headers, **credentials}

    def middlewares(self) -> tuple[ClientMiddlewareType, ...]:
        if self.username is None or not self.is_digest:
            return ()
        return (aiohttp.DigestAuthMiddleware(self.username, self.password or ""),)

    def tls(self) -> ssl.SSLContext | aiohttp.Fingerprint | bool:
        """Return aiohttp's argument `ssl` for the certificate check. Raise `AdapterFailed` if `ca_file` cannot be
        read."""
        if self.fingerprint is not None:
            return aiohttp.Fingerprint(bytes.fromhex(self.fingerprint.replace(":", "")))
        return True if self.ca_file is None else open_tls(self.ca_file)
