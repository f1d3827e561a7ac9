"""Asks a Matter controller server for its version. `lares doctor` uses this module without a running hub."""

from __future__ import annotations

import http.client
from typing import Any
from urllib.parse import urlsplit

from appliance.adapters.device_json import parse_json
from appliance.adapters.matter.kind import Matter
from appliance.adapters.matter.server import check_schema
from appliance.errors import AdapterFailed, BadAnswer
from appliance.tables.checks import format_value

TIMEOUT_SECS = 5.0
MAX_INFO_BYTES = 64 * 1024


def probe(settings: Matter) -> tuple[bool, str]:
    """Return two values: whether the server responds with a supported schema, and a message. The call takes up to
    five seconds."""
    try:
        info = _fetch_info(settings.url)
        check_schema(info)
    except AdapterFailed as error:
        return False, str(error)
    except (OSError, http.client.HTTPException) as error:
        reason = str(getattr(error, "strerror", None) or error or type(error).__name__).lower()
        return False, f"{settings.url} does not answer ({reason}); is the Matter server running? See docs/matter.md"
    radio = "with" if info.get("bluetooth_enabled") is True else "without"
    versions = f"SDK {format_value(info.get('sdk_version'))}, schema {info['schema_version']}"
    return True, f"the Matter server at {settings.url} answers: {versions}, {radio} Bluetooth"


def _fetch_info(url: str) -> dict[str, Any]:
    """Return the response of `/info` on the server of the WebSocket. Raise `BadAnswer`, `OSError`, and
    `HTTPException`."""
    parts = urlsplit(url)
    connect = http.client.HTTPSConnection if parts.scheme == "wss" else http.client.HTTPConnection
    connection = connect(parts.netloc, timeout=TIMEOUT_SECS)
    try:
        connection.request("GET", f"{parts.path.rpartition('/')[0]}/info")
        response = connection.getresponse()
        body = response.read(MAX_INFO_BYTES)
    finally:
        connection.close()
    info = parse_json(body, url) if response.status == http.client.OK else None
    if not isinstance(info, dict):
        raise BadAnswer(f"{url} is not a Matter server: its /info responds with status {response.status}")
    return info
