"""SSDP: sends searches for devices of a type, and parses the answers."""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct

SSDP_GROUP = ("239.255.255.250", 1900)

MAX_HEADERS = 64
"""Maximum number of header lines that are read from one answer."""

SSDP_MX_SECS = 1
"""The value of the header `MX`: the time limit for devices' answers, in seconds."""


class SsdpAnswer(Struct, frozen=True, kw_only=True):
    """The answer of a device: type (`ST`), name (`USN`), address, and port."""

    target: str
    usn: str
    host: str
    port: int


def encode_search(target: str) -> bytes:
    """Return the search message for devices of a type, such as `roku:ecp`."""
    lines = (
        "M-SEARCH * HTTP/1.1",
        f"HOST: {SSDP_GROUP[0]}:{SSDP_GROUP[1]}",
        'MAN: "ssdp:discover"',
        f"MX: {SSDP_MX_SECS}",
        f"ST: {target}",
    )
    return "\r\n".join((*lines, "", "")).encode()


def decode_ssdp(message: bytes, sender: str) -> SsdpAnswer | None:
    """Parse an answer. Return None if the answer is malformed, or if it contains an address other than the
    sender's."""
    first, *lines = message.decode(errors="replace").splitlines()[: MAX_HEADERS + 1] or [""]
    if not first.startswith("HTTP/1.1 200"):
        return None
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    try:
        location = urlsplit(headers.get("location", ""))
        host, port = location.hostname, location.port or 80
    except ValueError:
        return None
    if host != sender or location.scheme != "http":
        return None
    return SsdpAnswer(target=headers.get("st", ""), usn=headers.get("usn", ""), host=sender, port=port)
