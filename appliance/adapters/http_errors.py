"""What went wrong with an HTTP request to a device, in words."""

from __future__ import annotations

import os
import socket
import ssl
from http import HTTPStatus

import aiohttp

from appliance.errors import BadAnswer


class HttpRefused(BadAnswer):
    """The device answered with an HTTP status that is not success."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def named_status(status: int) -> str:
    """The status with its standard phrase. The device's own phrase is not repeated: it may be anything."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def reason_of(error: BaseException) -> str:
    """Why there was no response, in a few words on one line."""
    if isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closed the connection"
    if isinstance(error, UnicodeError):
        return "there can be no such name"
    if isinstance(error, OSError) and error.strerror:
        has_own_numbers = isinstance(error, socket.gaierror | ssl.SSLError)
        return (error.strerror if has_own_numbers or not error.errno else os.strerror(error.errno)).lower()
    return str(error) or type(error).__name__
