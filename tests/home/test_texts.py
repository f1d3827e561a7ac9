"""Valid ids and names contain no invisible characters, no reversed text, and no character that a path cannot
contain."""

from __future__ import annotations

import pytest

from appliance.errors import Invalid
from appliance.home.texts import MAX_NAME_CHARS, clean_text, strip_id, strip_text

CONTROL = ("a\0b", "a\nb", "a\x1bb", "a\x7fb", "a\x85b", "a\ud800b")
INVISIBLE = (
    *("a\u202eb", "a\u200eb", "a\u2066b", "a\u061cb", "a\u200bb", "a\ufeffb", "a\u2060b", "a\u00adb"),
    *("a\u2028b", "a\u2029b", "a\U000e0041b", "a\ufffeb", "a\U0010ffffb", "a\ufdd0b"),
)
BLANK = ("\u200d", "\u3164", "\u2800\u3164", "\u0301", "\u115f \u1160")
ONLY_IDS = (".", "..", " .. ", "a\u200db", "a\u200cb", "a\ue000b", "a\U000e1000b", "a\u0378b")
FINE = ("Küche", "客厅", "Кухня", "مطبخ", "a.b", "...", "x:y/z", "☕", "café", "a b", "1")
ONLY_NAMES = ("\U0001f468\u200d\U0001f469\u200d\U0001f467", "می\u200cخواهم", "\uf8ff TV", "new \U000e1000")


@pytest.mark.parametrize("text", [*CONTROL, *INVISIBLE, *BLANK, "", "  "], ids=ascii)
def test_neither_id_nor_name_can_be(text: str) -> None:
    with pytest.raises(Invalid) as as_id:
        strip_id(text)
    with pytest.raises(Invalid) as as_name:
        strip_text(text, MAX_NAME_CHARS)
    for refusal in (str(as_id.value), str(as_name.value)):
        assert refusal.isprintable() and refusal.startswith("must ")


@pytest.mark.parametrize("text", [*ONLY_IDS], ids=ascii)
def test_an_id_cannot_be(text: str) -> None:
    with pytest.raises(Invalid):
        strip_id(text)


@pytest.mark.parametrize("text", [*FINE, *ONLY_NAMES], ids=ascii)
def test_a_name_can_be(text: str) -> None:
    assert strip_text(f"\u2028 {text}\u3000\n", MAX_NAME_CHARS) == text
    if text in FINE:
        assert strip_id(f" {text}\t") == text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        *((each, "ab") for each in INVISIBLE if each[1] not in "\u2028\u2029"),
        ("a\u2028b", "a b"),
        ("a\0b", "ab"),
        ("a\r\nb", "a b"),
        ("a\x1b[31mb", "a[31mb"),
        (" Kitchen\tlamp\xa0 ", "Kitchen lamp"),
        ("a\ud800b", "ab"),
        *((each, each) for each in (*FINE, *ONLY_NAMES)),
        *((each, None) for each in (*BLANK, "", " \n", "\u202e\x07")),
        ("x" * 2000, "x" * MAX_NAME_CHARS),
    ],
    ids=ascii,
)
def test_a_name_from_a_device_is_cleaned_and_never_rejected(text: str, cleaned: str | None) -> None:
    assert clean_text(text, MAX_NAME_CHARS) == cleaned
