"""Parses the XML of devices safely. Repairs common faults in titles and names."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from traceback import clear_frames
from typing import TypeVar
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from appliance.computing import compute_apart
from appliance.errors import Invalid

MAX_XML_AT_ONCE = 4096
"""Maximum number of bytes of XML that are parsed on the event loop."""

T = TypeVar("T")

_DECLARED = re.compile(rb"""\s*<\?xml[^>]*encoding=["']([\w.-]+)["']""")
_FORBIDDEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_REFERENCE = re.compile(rb"&#(?:([0-9]{1,10})|[xX]([0-9a-fA-F]{1,8}));")
_AMPERSAND = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,10}|#x[0-9a-fA-F]{1,8});)")
"""Matches an ampersand outside of XML's references. It is escaped, so that an entity of HTML remains as text."""


def parse_xml(text: bytes) -> Element:
    """Return the root element. Raise `Invalid` for malformed XML, and for a document type declaration. The running
    time is proportional to the length."""
    for repair in (bytes, _repaired):
        parser = DefusedXMLParser(forbid_dtd=True)
        try:
            parser.feed(repair(text))
            root: Element = parser.close()
        except DefusedXmlException:
            raise Invalid("XML that has a document type, which is not allowed") from None
        except (ParseError, ValueError, LookupError) as error:
            clear_frames(error.__traceback__)  # ElementTree's frames would keep the error and the XML in memory
            continue
        finally:
            vars(parser).clear()  # the parser and its handlers form a cycle, which would keep an incomplete tree
        return root
    raise Invalid("something that is not XML")


async def parse_at_once_or_apart(parse: Callable[[bytes], T], text: bytes) -> T:
    """Return the result of this parser of XML. If the text is long, run the parser on a thread."""
    return parse(text) if len(text) <= MAX_XML_AT_ONCE else await compute_apart(parse, text)


def _repaired(text: bytes) -> bytes:
    """Remove forbidden characters and references to them, escape other ampersands, and replace broken UTF-8.

    The text must be UTF-16 with a byte order mark, or an encoding with one byte per ASCII character.
    """
    if text.startswith((codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)):
        return text
    coding = _DECLARED.match(text)
    readable = text if coding and coding[1].lower() != b"utf-8" else text.decode(errors="replace").encode()
    allowed = _REFERENCE.sub(_allowed_reference, _FORBIDDEN.sub(b"", readable)).strip()
    return _AMPERSAND.sub(b"&amp;", allowed)


def _allowed_reference(found: re.Match[bytes]) -> bytes:
    number = int(found[1]) if found[1] else int(found[2], 16)
    is_allowed = (
        number in (9, 10, 13) or 32 <= number < 0xD800 or 0xDFFF < number < 0xFFFE or 0xFFFF < number < 0x110000
    )
    return found[0] if is_allowed else b""
