"""An XML text whose elements are set in place."""

from __future__ import annotations

import pytest

from appliance.adapters.roku_tv.simulator import Elements

TEXT = "<a>\n  <one>1</one>\n  <none/>\n  <void></void>\n  <amp>x &amp; y</amp>\n</a>"


@pytest.mark.parametrize(
    ("name", "content"), [("one", "1"), ("none", ""), ("void", ""), ("amp", "x & y"), ("on", None), ("two", None)]
)
def test_contents_are_read(name: str, content: str | None) -> None:
    assert Elements(TEXT).get(name) == content


@pytest.mark.parametrize("name", ["one", "none", "void", "amp", "two"])
def test_putting_what_is_there_leaves_the_text(name: str) -> None:
    elements = Elements(TEXT)
    elements.put(name, elements.get(name))
    assert elements.text == TEXT


@pytest.mark.parametrize("content", ["2", "", "<b>", r"\1 \g<0>", "&lt;"])
@pytest.mark.parametrize("name", ["one", "none", "void", "amp", "two"])
def test_what_was_put_is_read_again_and_the_rest_stays(name: str, content: str) -> None:
    elements = Elements(TEXT)
    others = {other: elements.get(other) for other in ("one", "none", "void", "amp") if other != name}
    elements.put(name, content)
    assert elements.get(name) == content
    assert {other: elements.get(other) for other in others} == others


def test_none_takes_an_element_out() -> None:
    elements = Elements(TEXT)
    elements.put("one", None)
    elements.put("none", None)
    assert elements.text == "<a>\n  <void></void>\n  <amp>x &amp; y</amp>\n</a>"
