"""The parser of devices' XML."""

from __future__ import annotations

import gc
from contextlib import suppress
from xml.etree.ElementTree import Element

import pytest

from appliance.adapters.device_xml import parse_xml
from appliance.errors import Invalid


@pytest.mark.parametrize(
    "text", [b"<a>" * 500, b"<a/>" * 2, b"<!DOCTYPE a><a/>", b"<a>&#xffff;" * 500, b"", b"<a></a>"]
)
def test_neither_the_parser_nor_an_incomplete_tree_remains_in_memory(text: bytes) -> None:
    gc.collect()
    gc.disable()
    try:
        with suppress(Invalid):
            parse_xml(text)
        kept = [each for each in gc.get_objects() if isinstance(each, Element) or "XMLParser" in type(each).__name__]
        assert kept == []
    finally:
        gc.enable()
