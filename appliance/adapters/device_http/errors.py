"""Refused and failed HTTP requests, and their reasons."""

from __future__ import annotations

import os
import socket
import ssl
from http import HTTPStatus

import aiohttp

from appliance.errors import BadAnswer


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
