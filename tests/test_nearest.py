"""The most similar word is the word that `difflib` finds, even among thousands of words."""

from __future__ import annotations

from difflib import get_close_matches

from hypothesis import given
from hypothesis import strategies as st

from appliance.tables.checks import MAX_NEAREST_CHARS, nearest
from tests.fakes.rows import each_row

LETTERS = st.text("ghijk:_", max_size=12)


@given(LETTERS, st.lists(LETTERS.filter(bool), max_size=30), st.sampled_from([0.3, 0.6, 0.9]))
def test_the_nearest_word_is_the_one_of_difflib(word: str, words: list[str], likeness: float) -> None:
    found = get_close_matches(word, words, n=1, cutoff=likeness)
    assert nearest(word, words, likeness) == (found[0] if found else None)


MANY = [f"hub:lamp_{number}" for number in range(5000)]


@each_row("word, found", [("hub:lamp_17x", "hub:lamp_17"), ("lump", None), ("x" * (MAX_NEAREST_CHARS + 1), None)])
def test_thousands_of_words_are_searched(word: str, found: str | None) -> None:
    assert nearest(word, MANY) == found
