"""Where a request's head and body end, as RFC 9112 says: what two programs could read in two ways is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sanic.exceptions import BadRequest, SanicException

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_TARGET = rb"(?:/[!-~]*|\*|https?://[!-.0->@-~]+/[!-~]*)"
_FIELD = rb"%b:[^\x00-\x08\x0a-\x1f\x7f]*" % _TOKEN
_HEAD = re.compile(rb"%b %b HTTP/1\.[01](?:\r\n%b)*" % (_TOKEN, _TARGET, _FIELD))
_TRAILER = re.compile(_FIELD)
_QUOTED = rb'"(?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"'
_EXTENSION = rb"[ \t]*;[ \t]*%b(?:[ \t]*=[ \t]*(?:%b|%b))?" % (_TOKEN, _TOKEN, _QUOTED)
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})(?:%b)*" % _EXTENSION)
_LENGTH = re.compile(rb"[0-9]{1,18}")
_CODINGS = re.compile(rb"%b(?:[ \t]*,[ \t]*%b)*" % (_TOKEN, _TOKEN))
_HOST = re.compile(rb"[-A-Za-z0-9._~%!$&'()*+,;=:\[\]]*")

BLANKS = b" \t"
"""What may stand around a field's value and belongs to it no more than its colon: OWS."""


class UnknownCoding(SanicException):
    """The request's body comes in a transfer coding that the hub does not know: 501, and the connection ends."""

    status_code = 501


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A request's head. The names of `fields` are in lower case; `version` is `1.0` or `1.1`.

    `length` is the body's in bytes, None where it comes in chunks; `has_body` says whether one was announced.
    """

    method: str
    target: str
    version: str
    fields: tuple[tuple[bytes, bytes], ...]
    has_body: bool
    length: int | None

    @property
    def is_persistent(self) -> bool:
        """Whether the client lets the connection go on after the response."""
        options = {
            each.strip(BLANKS).lower() for value in _values(self.fields, b"connection") for each in value.split(b",")
        }
        if b"close" in options:
            return False
        return options in (set(), {b"keep-alive"}) if self.version == "1.1" else b"keep-alive" in options


def parse_head(head: bytes) -> Head:
    """The head that these bytes are, without the empty line behind it.

    Raises `BadRequest` where they are none, and `UnknownCoding` where the body's transfer coding is not known.
    """
    if _HEAD.fullmatch(head) is None:
        raise BadRequest("the head of the request is malformed")
    line, *lines = head.split(b"\r\n")
    method, target, protocol = line.decode("ascii").split(" ")
    version = protocol.removeprefix("HTTP/")
    fields = tuple(_parse_field(each) for each in lines)
    _check_host(fields, version)
    has_body, length = _parse_framing(fields, version)
    return Head(method=method, target=target, version=version, fields=fields, has_body=has_body, length=length)


def parse_chunk(line: bytes) -> int:
    """The size of the chunk that the line announces; its extensions are ignored. Raises `BadRequest`."""
    match = _CHUNK.fullmatch(line)
    if match is None:
        raise BadRequest("the size of a chunk is malformed")
    return int(match[1], 16)


def check_trailer(line: bytes) -> None:
    """Raise `BadRequest` unless the line is a field, as those that may follow the last chunk."""
    if _TRAILER.fullmatch(line) is None:
        raise BadRequest("what follows the last chunk is malformed")


def _parse_field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.lower(), value.strip(BLANKS)


def _check_host(fields: tuple[tuple[bytes, bytes], ...], version: str) -> None:
    hosts = _values(fields, b"host")
    is_missing = not hosts and version == "1.1"
    if is_missing or len(hosts) > 1 or not all(_HOST.fullmatch(host) for host in hosts):
        raise BadRequest("the request must name its Host, once")


def _parse_framing(fields: tuple[tuple[bytes, bytes], ...], version: str) -> tuple[bool, int | None]:
    """Whether there is a body, and its length, None for chunks.

    A length beside chunks, or one of them twice, is how a request is smuggled past a proxy; HTTP/1.0 has no chunks.
    """
    codings, lengths = _values(fields, b"transfer-encoding"), _values(fields, b"content-length")
    if len(codings) + len(lengths) > 1:
        raise BadRequest("the request states more than once how long its body is")
    if codings:
        if version == "1.0":
            raise BadRequest("HTTP/1.0 knows no Transfer-Encoding")
        _check_coding(codings[0].lower())
        return True, None
    if not lengths:
        return False, 0
    if _LENGTH.fullmatch(lengths[0]) is None:
        raise BadRequest("the Content-Length is malformed")
    return True, int(lengths[0])


def _check_coding(value: bytes) -> None:
    """Raise unless the value is `chunked`: `UnknownCoding` for another coding, `BadRequest` for none.

    Chunks that are not the last coding, or come twice, leave open where the body ends: that is malformed.
    """
    if value == b"chunked":
        return
    names = [each.strip(BLANKS) for each in value.split(b",")]
    if _CODINGS.fullmatch(value) is None or b"chunked" in names[:-1] or set(names) == {b"chunked"}:
        raise BadRequest("the Transfer-Encoding is malformed")
    raise UnknownCoding("the only Transfer-Encoding that is understood is chunked")


def _values(fields: tuple[tuple[bytes, bytes], ...], name: bytes) -> list[bytes]:
    return [value for each, value in fields if each == name]
