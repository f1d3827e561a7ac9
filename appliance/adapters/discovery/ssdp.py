"""SSDP: searches, and what answers to them say."""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct

MAX_HEADERS = 64
"""Lines that are read of one answer."""

SEARCH_SECS = 1
"""Within how many seconds a device is asked to answer (MX)."""


class SsdpAnswer(Struct, frozen=True, kw_only=True):
    """A device that answered: what it is (`ST`), its name (`USN`), and where it listens."""

    target: str
    usn: str
    host: str
    port: int


def encode_search(target: str) -> bytes:
    """The message that asks for devices of a kind, such as `roku:ecp`."""
    lines = (
        "M-SEARCH * HTTP/1.1",
        "HOST: 239.255.255.250:1900",
        'MAN: "ssdp:discover"',
        f"MX: {SEARCH_SECS}",
        f"ST: {target}",
    )
    return "\r\n".join((*lines, "", "")).encode()


def decode_answer(message: bytes, sender: str) -> SsdpAnswer | None:
    """What the answer says; None where it is none, or does not lead to the address that sent it."""
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
