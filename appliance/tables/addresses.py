"""Checks of network addresses: hosts, ports, URLs, and web origins."""

from __future__ import annotations

import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from appliance.errors import Invalid
from appliance.tables.checks import Mismatch, format_value, string

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA = frozenset(map(ipaddress.ip_address, ("169.254.169.254", "fd00:ec2::254")))
"""Addresses at which a virtual machine in a cloud can read its own credentials."""

_CARRIERS = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "64:ff9b::/96")))
"""Ranges of IPv6 addresses whose last four bytes are an IPv4 address: IPv4-compatible, IPv4-mapped, and NAT64."""

DEFAULT_PORTS = {"http": 80, "https": 443, "mqtt": 1883, "mqtts": 8883}

_IN_BRACKETS = re.compile(r"[^\[\]]+|\[[^\[\]]*:[^\[\]]*\](:[0-9]*)?")
"""Matches host and port. Only IPv6 addresses can have brackets."""


class Address(Struct, frozen=True, kw_only=True):
    """An address to listen on: an IP address or host name, and a port from 0 to 65535. Port 0 selects a free port."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine can connect."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"


def bracketed(host: str) -> str:
    """Return the host for a URL, with brackets around an IPv6 address."""
    return f"[{host}]" if ":" in host else host


def is_numeric(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def address(value: Any) -> Address:
    """Parse an address in the form `address:port`, with brackets around IPv6 addresses."""
    match = re.fullmatch(r"(?:\[([^\[\]]+)\]|([^\[\]:]+)):([0-9]{1,5})", string(value))
    try:
        if match is None or int(match[3]) > 65535:
            raise ValueError
        name = host(match[2]) if match[1] is None else str(ipaddress.IPv6Address(match[1]))
    except (Invalid, ValueError):
        expected = 'an address and a port like "127.0.0.1:3000" or "[::]:3000"'
        raise Mismatch(expected, value) from None
    return Address(host=name, port=int(match[3]))


def base_url(value: Any) -> str:
    """Check the base URL of an HTTP service. The service may run on the hub's machine, so loopback is allowed."""
    text = string(value).rstrip("/")
    _refuse_user(text)
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and bool(host(parts.hostname or "")) and parts.port != 0
        is_valid = is_valid and _IN_BRACKETS.fullmatch(parts.netloc) is not None
    except (Invalid, ValueError):
        is_valid = False
    if not is_valid or not text.isprintable() or re.search(r"[ ?#]", text):
        raise Mismatch('an address like "http://192.168.1.20:9123"', value)
    name = parts.hostname or ""
    if is_numeric(name) and is_forbidden(meant := without_carrier(ipaddress.ip_address(name))):
        remedy = "; for this machine, use 127.0.0.1" if meant.is_unspecified else ""
        raise Invalid(f"must be the address of a device or service; {name} is reserved{remedy}")
    return text


def _refuse_user(url: str) -> None:
    """Raise `Invalid` if the URL contains a user. The error omits the URL, because it may contain a password."""
    if re.match(r"[^/]*//[^/]*@", url):
        raise Invalid("must not contain a user or password; use separate keys for them")


def write_url(value: Any) -> str:
    """Check the full URL of a server that accepts InfluxDB's line protocol. If the URL sets a precision, it must be
    nanoseconds."""
    text = string(value)
    _refuse_user(text)
    try:
        parts = urlsplit(text)
        base_url(f"{parts.scheme}://{parts.netloc}")
        is_clean = text.isprintable() and text.isascii() and " " not in text and not parts.fragment
    except (Invalid, ValueError):
        is_clean = False
    if not is_clean:
        # the error omits the URL, because its query may contain a password
        raise Invalid('must be a full URL like "http://192.168.1.20:8086/api/v2/write?org=home&bucket=lares"')
    if any(each not in ("precision=ns", "precision=n") for each in parts.query.split("&") if "precision=" in each):
        raise Invalid("must contain precision=ns, because the hub sends times in nanoseconds")
    return text


def server_of(url: str) -> str:
    """Return the URL without path and query, because these can contain secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def host(value: Any) -> str:
    """Check an IP address or a well-formed host name. The name is not resolved."""
    text = string(value)
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        if re.fullmatch(r"(?=.*[^\W\d_])\w([\w.-]*[\w.])?", text) is None or not _is_name(text):
            raise Mismatch('an address like "192.168.1.30"', value) from None
        return text


def _is_name(text: str) -> bool:
    """Return whether the name is a valid DNS name. Reject names that some systems parse as IP addresses, such as
    `0x7f.1` or `①②⑦.0.0.1`."""
    try:
        name = text.encode("idna").decode().rstrip(".")
    except UnicodeError:
        return False
    is_number = re.fullmatch(r"0[xX][0-9a-fA-F]*|[0-9]+", name.rpartition(".")[2]) is not None
    return len(name) <= 253 and not is_number


def without_carrier(address: IpAddress) -> IpAddress:
    """Return the embedded IPv4 address. If no IPv4 address is embedded, return the given address unchanged."""
    # the unspecified and loopback addresses do not embed an IPv4 address
    if isinstance(address, ipaddress.IPv4Address) or int(address) <= 1:
        return address
    if any(address in network for network in _CARRIERS):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour or address


def is_forbidden(address: IpAddress) -> bool:
    """Return whether the address belongs to a metadata service or cannot belong to a single device."""
    is_nobody = address.is_unspecified or address.is_multicast or address in _METADATA
    return is_nobody or (address.version == 4 and (address.is_reserved or int(address) < 1 << 24))


def network(value: Any) -> Network:
    try:
        return ipaddress.ip_network(string(value), strict=False)
    except ValueError:
        raise Mismatch('an address or network like "127.0.0.1" or "10.0.0.0/8"', value) from None


def origin(value: Any) -> str:
    """Check a web origin, in exactly the form that browsers send."""
    text = string(value)
    try:
        parts = urlsplit(text)
        port = "" if parts.port in (None, DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
        name = host(parts.hostname or "")
        exact = f"{parts.scheme}://{bracketed(name)}{port}"
    except (Invalid, ValueError):
        exact = ""
    if not exact.startswith(("http://", "https://")):
        raise Mismatch('origins like "http://192.168.1.10:8080", without wildcards', value)
    if not text.isascii():
        raise Mismatch('origins as browsers send them, with ASCII names like "http://xn--mnchen-3ya.example"', value)
    if text != exact:
        raise Mismatch(f"origins as browsers send them: {format_value(exact)}", value)
    return text
