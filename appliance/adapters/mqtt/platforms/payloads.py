"""Parses message texts: known values first, then an empty text, then texts for an unknown value."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct

from appliance.errors import Invalid
from appliance.home.values import Value

Update = Mapping[str, Value]
"""New values by attribute. None means that the value is unknown."""

UNKNOWN = ("none", "unknown", "unavailable", "nan", "inf", "-inf", "infinity", "-infinity")
"""Texts for an unknown value, in lower case. Comparisons ignore case."""

MAX_LISTED_WORDS = 8
"""Maximum number of words that an error message lists."""


class UnknownValue(Invalid):
    """A message contained an unknown text for an attribute. `update` holds the values that the message changes.
    Without `update`, the attribute becomes unknown."""

    def __init__(self, text: str, expected: str, attribute: str, update: Update | None = None) -> None:
        end = "; the value is unknown now" if update is None else ""
        super().__init__(f"{text[:40]!r} is not {expected}{end}")
        self.text = text[:40]
        self.attribute = attribute
        self.update: Update = {attribute: None} if update is None else update


def is_unknown(text: str) -> bool:
    return text.lower() in UNKNOWN


def one_of(words: Iterable[str]) -> str:
    """Return the expected words for `UnknownValue`."""
    listed = [repr(each[:40]) for each in words if not is_unknown(each)]
    more = ["…"] if len(listed) > MAX_LISTED_WORDS else []
    return f"one of {', '.join(listed[:MAX_LISTED_WORDS] + more)}"


def same_word(text: str, words: Collection[str]) -> str | None:
    """Return the only word that differs from the text at most in case and in outer white space, or None."""
    given = text.strip().casefold()
    equal = [word for word in words if word.casefold() == given]
    return equal[0] if len(equal) == 1 else None


def read_word(
    text: str, words: Mapping[str, Value], key: str, *, ignored: Collection[str] = (), keeps: bool = True
) -> Update:
    """Return the value of a word. An empty text and the ignored words change nothing. Case and outer white
    space are ignored, unless two words differ only in case.

    Raise `UnknownValue` for other texts. The attribute then keeps its value if `keeps` is true, and otherwise becomes
    unknown.
    """
    if text in words:
        return {key: words[text]}
    if text == "" or text in ignored:
        return {}
    if is_unknown(text):
        return {key: None}
    if (word := same_word(text, words)) is not None:
        return {key: words[word]}
    if same_word(text, ignored) is not None:
        return {}
    raise UnknownValue(text, one_of(words), key, {} if keeps else None)


class WordParser(Struct, frozen=True, gc=False):
    """Parses words with `read_word`. By default, the attribute is the entity's custom attribute."""

    words: Mapping[str, Value]
    attribute: str = ""
    ignored: tuple[str, ...] = ()
    keeps: bool = True

    def __call__(self, entity: Any, text: str) -> Update:
        return read_word(
            text, self.words, self.attribute or entity.custom_key, ignored=self.ignored, keeps=self.keeps
        )
