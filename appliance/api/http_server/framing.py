"""The framing of requests according to RFC 9112. Input that two programs could interpret differently is rejected."""

from __future__ import annotations

import re

from msgspec import Struct
from sanic.compat import Header
from sanic.exceptions import BadRequest, SanicException

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_TARGET = rb"(?:/[!-~]*|\*|https?://[!-.0->@-~]+/[!-~]*)"
_FIELD = rb"%b:[^\x00-\x08\x0a-\x1f\x7f]*" % _TOKEN
_LINE = re.compile(rb"(%b) (%b) HTTP/(1\.[01])(?=\r\n|\Z)" % (_TOKEN, _TARGET))
_LOOSE_LINE = re.compile(rb"%b ([^\r\n]*?)(?: HTTP/[^ \r\n]*)?(?=[\r\n]|\Z)" % _TOKEN)
_FIELDS = re.compile(rb"(?:\r\n%b)*" % _FIELD)
_TRAILER = re.compile(_FIELD)
_QUOTED = rb'"(?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"'
_EXTENSION = rb"[ \t]*;[ \t]*%b(?:[ \t]*=[ \t]*(?:%b|%b))?" % (_TOKEN, _TOKEN, _QUOTED)
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})(?:%b)*" % _EXTENSION)
_TOKEN_TEXT = _TOKEN.decode()
_LENGTH = re.compile(r"[0-9]+")
_CODINGS = re.compile(rf"{_TOKEN_TEXT}(?:[ \t]*,[ \t]*{_TOKEN_TEXT})*")
_HOST = re.compile(r"[-A-Za-z0-9._~%!$&'()*+,;=:\[\]]*")

_CONTROLS = bytes({*range(0x20), 0x7F} - {*b"\t\n\r"})
"""Control characters that a request head must not contain. LF is valid only after CR."""

_TLS_RECORD = b"\x16\x03"

BLANKS = " \t"
"""White space that may surround a field's value, but is not part of the value (OWS in RFC 9110)."""


class UnknownCoding(SanicException):
    """The error for an unsupported transfer coding of a body. The connection ends after this error."""

    status_code = 501


class HeadFields(Struct, frozen=True, kw_only=True):
    """The fields of a request's head.

    - `raw`: the fields' text, with the CRLF before each field.
    - `headers`: the fields by lower-case name.
    - `is_persistent`: whether the client keeps the connection after the response.
    - `length`: the body's length in bytes; None if the body is chunked.
    """

    raw: bytes
    version: str
    headers: Header
    is_persistent: bool
    has_body: bool
    length: int | None


class Head(Struct, frozen=True, kw_only=True):
    """A request's head. `raw` is the head's text."""

    raw: bytes
    method: str
    target: bytes
    fields: HeadFields


def check_beginning(head: bytes | bytearray, checked: int) -> None:
    """Raise `BadRequest` if no valid head begins with these bytes. Because of this check, the client gets an error
    before the timeout. An earlier call has already checked the first `checked` bytes."""
    if head.startswith(_TLS_RECORD):
        raise BadRequest("the hub supports only plain HTTP, but this is TLS; begin the address with http://")
    # these methods need 5 % of the time of a regular expression, and hundreds of clients can send incomplete heads
    has_control = len(head[checked:].translate(None, _CONTROLS)) < len(head) - checked
    if has_control or head.count(b"\n", checked) != head.count(b"\r\n", max(checked - 1, 0)):
        parse_head(bytes(head))


def parse_head(head: bytes, earlier: HeadFields | None = None) -> Head:
    """Parse these bytes as a request's head, without the empty line after it.

    The fields of the `earlier` head are reused if they are equal, because most clients repeat them in each request.
    Raise `BadRequest`, or `UnknownCoding` for an unknown transfer coding of the body.
    """
    match = _LINE.match(head)
    if match is None:
        raise _explain_line(head)
    method, target, version = match.groups()
    raw, stated = head[match.end() :], version.decode()
    if earlier is None or earlier.raw != raw or earlier.version != stated:
        earlier = _parse_fields(raw, stated)
    return Head(raw=head, method=method.decode(), target=target, fields=earlier)


def _explain_line(head: bytes) -> BadRequest:
    """Return the error for a malformed request line."""
    match = _LOOSE_LINE.match(head)
    has_forbidden = match is not None and re.search(rb"[^!-~]", match[1].strip()) is not None
    advice = "; percent-encode spaces and non-ASCII characters" if has_forbidden else ""
    example = "'GET /devices HTTP/1.1' and end with CR LF"
    return BadRequest(f"the request line is malformed: it must be like {example}{advice}")


def _parse_fields(raw: bytes, version: str) -> HeadFields:
    match = _FIELDS.match(raw)
    assert match is not None  # the pattern also matches empty bytes
    if (end := match.end()) < len(raw):
        number, example = raw.count(b"\r\n", 0, end + 2), "'Name: value' without control characters"
        raise BadRequest(f"header {number} is malformed: it must be like {example}, and end with CR LF")
    headers = Header([_parse_field(each) for each in raw.decode(errors="surrogateescape").split("\r\n")[1:]])
    _check_host(headers, version)
    if len(headers.getall("authorization", ())) > 1:
        raise BadRequest("the request has more than one Authorization header")
    has_body, length = _parse_framing(headers, version)
    return HeadFields(
        raw=raw,
        version=version,
        headers=headers,
        is_persistent=_is_persistent(headers, version),
        has_body=has_body,
        length=length,
    )


def parse_chunk(line: bytes) -> int:
    """Return the size in the first line of a chunk, and ignore the extensions. Raise `BadRequest` if the line is
    malformed."""
    match = _CHUNK.fullmatch(line)
    if match is None:
        raise BadRequest("the size of a chunk is malformed")
    return int(match[1], 16)


def check_trailer(line: bytes) -> None:
    """Raise `BadRequest` unless the line is a trailer field."""
    if _TRAILER.fullmatch(line) is None:
        raise BadRequest("the data after the last chunk is malformed")


def _parse_field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.lower(), value.strip(BLANKS)


def _is_persistent(headers: Header, version: str) -> bool:
    stated = headers.getall("connection", ())
    options = {each.strip(BLANKS).lower() for value in stated for each in value.split(",")}
    if "close" in options or not all(map(str.isascii, stated)):
        return False
    return options in (set(), {"keep-alive"}) if version == "1.1" else "keep-alive" in options


def _check_host(headers: Header, version: str) -> None:
    hosts = headers.getall("host", ())
    is_missing = not hosts and version == "1.1"
    if is_missing or len(hosts) > 1 or (hosts and not _HOST.fullmatch(hosts[0])):
        raise BadRequest("the request must have exactly one Host header")


def _parse_framing(headers: Header, version: str) -> tuple[bool, int | None]:
    """Return whether there is a body, and the body's length. The length of a chunked body is None.

    Raise `BadRequest` for a length together with chunks, for two lengths or codings (request smuggling), and for
    chunks in HTTP/1.0.
    """
    codings, lengths = headers.getall("transfer-encoding", ()), headers.getall("content-length", ())
    if len(codings) + len(lengths) > 1:
        raise BadRequest("the request states the length of its body more than once")
    if codings:
        if version == "1.0":
            raise BadRequest("HTTP/1.0 does not support Transfer-Encoding")
        _check_coding(codings[0])
        return True, None
    if not lengths:
        return False, 0
    if _LENGTH.fullmatch(lengths[0]) is None:
        raise BadRequest("the Content-Length is malformed")
    # 19 digits exceed every limit of a body, and Python does not convert thousands of digits
    return True, int(lengths[0].lstrip("0")[:19] or "0")


def _check_coding(stated: str) -> None:
    """Accept only the coding `chunked`.

    Raise `UnknownCoding` for any other coding. Raise `BadRequest` if there is no coding, or if `chunked` is repeated
    or not last, because the end of the body is then unknown.
    """
    names = [each.strip(BLANKS) for each in stated.lower().split(",")]
    if _CODINGS.fullmatch(stated) is None or "chunked" in names[:-1]:
        raise BadRequest("the Transfer-Encoding is malformed")
    if names != ["chunked"]:
        raise UnknownCoding("the only supported Transfer-Encoding is chunked")
