"""`xml.decode` of kinds in Lua: an element as a table of name, attributes, text and children."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

MAX_ELEMENTS, MAX_DEPTH = 10_000, 14
"""Elements of one text, and how deep they lie; a table of each is two levels of JSON."""


def decode_xml(text: bytes) -> dict[str, Any]:
    """`{value}`, the root element as `{name, attributes, text, children}`; or `{fault}`, a sentence.

    Names are without namespaces. Entities are refused. Blocks in proportion to the text.
    """
    try:
        root = fromstring(text, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError, UnicodeError):
        return {"fault": "is not XML"}
    if sum(1 for _ in root.iter()) > MAX_ELEMENTS or _depth(root) > MAX_DEPTH:
        return {"fault": f"has more than {MAX_ELEMENTS} elements, or more than {MAX_DEPTH} levels of them"}
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
