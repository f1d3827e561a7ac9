"""Hints for wrong address keys in adapter sections. Each hint contains the correct line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from appliance.tables.addresses import bracketed

ADDRESS_KEYS = ("base_url", "host", "ip_address", "url")
"""Names of address keys in sections of any kind. `base_url` is `http://host:port`. `host` and `ip_address` have no
scheme or port."""

_SYNONYMS = frozenset({*ADDRESS_KEYS, "address", "addr", "ip", "hostname", "server", "broker", "uri", "baseurl"})

Hint = Callable[[str, list[str]], str]


def hint_of_addresses(raw: Mapping[str, Any], otherwise: Hint, default_url: str | None = None) -> Hint:
    """Return a function that explains an unknown key. For an address key, the function returns the correct line.
    For any other key, the function calls `otherwise`. `default_url` is the default of the key `url`."""

    def hint(key: str, known: list[str]) -> str:
        right = next((each for each in ADDRESS_KEYS if each in known), None)
        if key.lower() not in _SYNONYMS or right is None or right in raw:
            return otherwise(key, known)
        return "; write " + " and ".join(_lines(right, raw, known, default_url))

    return hint


def _lines(right: str, raw: Mapping[str, Any], known: list[str], default_url: str | None) -> Iterator[str]:
    """Yield the lines for the address and its port in `raw`. If `raw` has no address, use an example address."""
    stated = next((raw[each] for each in raw if each.lower() in _SYNONYMS and isinstance(raw[each], str)), "")
    try:
        parts = urlsplit(stated if "//" in stated else f"//{stated}")
        host, port = parts.hostname or "192.168.1.20", parts.port or raw.get("port")
    except ValueError:
        parts, host, port = urlsplit(""), "192.168.1.20", None
    if right in ("host", "ip_address"):
        yield f'{right} = "{host}"'
        if parts.port is not None and "port" in known and "port" not in raw:
            yield f"port = {port}"
    elif right == "url" and default_url is not None:
        default = urlsplit(default_url)
        url = default._replace(netloc=_netloc(host, default.port)).geturl()
        yield f'url = "{url}"'
    else:
        scheme = parts.scheme if parts.scheme in ("http", "https") else "http"
        yield f'{right} = "{scheme}://{_netloc(host, port)}"'


def _netloc(host: str, port: Any) -> str:
    """Return host and port for a URL. Omit a port that is not a number."""
    return f"{bracketed(host)}:{port}" if isinstance(port, int) else bracketed(host)
