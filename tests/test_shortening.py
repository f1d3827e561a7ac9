"""Texts for people are cut and listed in one way."""

from __future__ import annotations

import pytest

from appliance.shortening import join_first, shorten


@pytest.mark.parametrize(("text", "shown"), [("", ""), ("abcd", "abcd"), ("abcde", "abc…")])
def test_a_long_text_ends_with_an_ellipsis(text: str, shown: str) -> None:
    assert shorten(text, 4) == shown


@pytest.mark.parametrize(
    ("texts", "separator", "shown"),
    [
        ([], ", ", ""),
        (["a", "b"], ", ", "a, b"),
        (["a", "b", "c"], ", ", "a, b, and 1 more"),
        (["a", "b", "c", "d"], "; ", "a; b; and 2 more"),
    ],
)
def test_a_long_list_ends_with_the_number_of_the_others(texts: list[str], separator: str, shown: str) -> None:
    assert join_first(texts, 2, separator) == shown


def test_the_number_of_the_others_may_include_texts_that_are_not_known() -> None:
    assert join_first(["a", "b"], 2, "\n", 5) == "a\nb\nand 3 more"
    assert join_first(["a"], 2, "\n", 1) == "a"
