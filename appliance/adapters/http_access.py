"""Credentials and certificate checks for the addresses of vendors, and the reasons of failed requests."""

from __future__ import annotations

import base64
import os
import socket
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

import aiohttp
from aiohttp import ClientMiddlewareType
from msgspec import field

from appliance.adapters.tls import open_tls
from appliance.errors import BadAnswer
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


class HttpRefused(BadAnswer):
    """Raised if the device answered with an HTTP status other than 2xx."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def named_status(status: int) -> str:
    """Return the status with its standard phrase. The device's phrase is ignored, because it may contain anything."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def reason_of(error: BaseException) -> str:
    """Return, in a few words, why there was no response."""
    if isinstance(error, aiohttp.ServerFingerprintMismatch):
        return f"its certificate has a different fingerprint, {error.got.hex()}"
    if isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closed the connection"
    if isinstance(error, UnicodeError):
        return "invalid host name"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message.rstrip('.').lower()}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    if isinstance(error, OSError) and error.strerror:
        has_own_numbers = isinstance(error, socket.gaierror | ssl.SSLError)
        return (error.strerror if has_own_numbers or not error.errno else os.strerror(error.errno)).lower()
    return str(error) or type(error).__name__
