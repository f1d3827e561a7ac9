"""Decodes JSON and XML for the Lua tables `json` and `xml` of kinds."""

from __future__ import annotations

from codecs import getincrementaldecoder
from typing import Any
from xml.etree.ElementTree import Element

import msgspec

from appliance.adapters.device_xml import parse_xml
from appliance.errors import Invalid

MAX_JSON_MARKS = 500_000
"""Maximum number of commas, brackets, braces, and backslashes in JSON. Parsing more of these would block the event
loop for too long."""

_SLICE_BYTES = 1 << 18
"""Number of bytes that are checked at once, because each check needs a copy."""

_Utf8Decoder = getincrementaldecoder("utf-8")

MAX_ELEMENTS, MAX_DEPTH = 10_000, 14
"""Maximum number of elements in one text, and their maximum depth. Each XML element needs two levels of JSON."""


def compact_json(body: bytes | str) -> bytes:
    """Remove white space from JSON. Raise `Invalid` if the text is not JSON, too deep, or too large.

    The worker decodes the JSON, because decoding in the hub would block the event loop ten times as long.
    """
    text, marks = body if isinstance(body, bytes) else body.encode(errors="replace"), 0
    utf8 = _Utf8Decoder()
    try:
        for start in range(0, len(text), _SLICE_BYTES):
            piece = text[start : start + _SLICE_BYTES]
            marks += sum(map(piece.count, (b",", b"[", b"{", b"\\")))
            if marks > MAX_JSON_MARKS:
                raise Invalid(f"has more than {MAX_JSON_MARKS} values and escape sequences in total")
            utf8.decode(piece)
        utf8.decode(b"", final=True)
        return msgspec.json.format(text, indent=-1)
    except (UnicodeError, msgspec.DecodeError):
        raise Invalid("is not JSON") from None
    except RecursionError:
        raise Invalid("is nested too deeply") from None


def decode_xml(text: bytes) -> dict[str, Any]:
    """Parse XML. Return the root element as `{value: {name, attributes, text, children}}`, or `{fault}`.

    Names have no namespaces. Entities are rejected. The function blocks for a time that is proportional to the length
    of the text.
    """
    try:
        root = parse_xml(text)
    except Invalid:
        return {"fault": "is not XML"}
    if sum(1 for _ in root.iter()) > MAX_ELEMENTS or _depth(root) > MAX_DEPTH:
        return {"fault": f"has more than {MAX_ELEMENTS} elements, or more than {MAX_DEPTH} levels of nesting"}
    return {"value": _table_of(root)}


def _depth(element: Element) -> int:
    depth, level = 0, [element]
    while level:
        depth, level = depth + 1, [child for each in level for child in each]
    return depth


def _table_of(element: Element) -> dict[str, Any]:
    return {
        "name": _local(element.tag),
        "attributes": {_local(name): value for name, value in element.attrib.items()},
        "text": "".join(element.itertext() if len(element) == 0 else [element.text or ""]).strip(),
        "children": [_table_of(child) for child in element],
    }


def _local(name: str) -> str:
    return name.rpartition("}")[2]
