"""The kind `matter`: settings and catalog entry."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from appliance.adapters.kind import AdapterKind
from appliance.errors import Invalid
from appliance.home.model import DeviceKind
from appliance.tables import addresses
from appliance.tables.addresses import Address
from appliance.tables.checks import Mismatch, string
from appliance.tables.fields import Settings, key

DEFAULT_URL = "ws://127.0.0.1:5580/ws"


def _url(value: Any) -> str:
    """Check the address of a WebSocket."""
    text = string(value)
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("ws", "wss") and bool(addresses.host(parts.hostname or "")) and parts.port != 0
    except (Invalid, ValueError):
        is_valid = False
    is_clean = text.isprintable() and " " not in text
    if not is_valid or not is_clean or parts.query or parts.fragment or parts.username is not None:
        raise Mismatch(f'an address like "{DEFAULT_URL}"', value)
    return text


def split_url(url: str) -> tuple[str, str]:
    """Split the URL of a WebSocket into the server's address and the path."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}", parts.path or "/"


class Matter(Settings, frozen=True, kw_only=True):
    """Settings of an enabled section."""

    url: str = key(_url, DEFAULT_URL)


def _warn(settings: Matter) -> tuple[str, str] | None:
    """Return a warning if the server is on another machine."""
    host = urlsplit(settings.url).hostname or ""
    if Address(host=host, port=0).is_loopback:
        return None
    risk = "that server has no password, so every program that reaches its port can open the locks"
    return "url", f"names a server on another machine; {risk}"


MATTER = AdapterKind(
    name="matter",
    title="Matter",
    settings=Matter,
    device_kinds=frozenset({DeviceKind.LIGHT, DeviceKind.SWITCH, DeviceKind.SENSOR}),
    operations=frozenset({"pair", "unpair", "share", "identify"}),
    has_probe=True,
    warn=_warn,
    simulated=lambda server: Matter(url=f"{server.url.replace('http', 'ws', 1)}/ws"),
    in_demo="Matter server",
)
