"""Parses message texts: known values first, then an empty text, then texts for an unknown value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
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


MAX_WORD_CHARS = 200
"""Maximum length of a word that is not announced. A longer word is cut."""


class UnknownWord(Invalid):
    """A message contained an unknown text. It changes no value, for example because it is the name of an event."""

    def __init__(self, text: str, expected: str, attribute: str, end: str = "") -> None:
        super().__init__(f"{text[:40]!r} is not {expected}{end}")
        self.text = text[:40]
        self.attribute = attribute
        self.update: Update = {}


class UnknownValue(UnknownWord):
    """A message contained an unknown text for an attribute, which becomes unknown. `update` holds all values that the
    message changes."""

    def __init__(self, text: str, expected: str, attribute: str, update: Update | None = None) -> None:
        super().__init__(text, expected, attribute, "; the value is unknown now")
        self.update = {**(update or {}), attribute: None}


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


def shown_word(given: Any, words: Collection[str]) -> Value:
    """Return the word that equals the given text apart from case and outer white space, otherwise the text. Return
    None for an empty or unknown text, and for a list or an object."""
    if isinstance(given, dict | list):
        return None
    text = str(given)[:MAX_WORD_CHARS]
    if text in words:
        return text
    return None if text == "" or is_unknown(text) else same_word(text, words) or text


def read_word(text: str, words: Mapping[str, Value], key: str, *, ignored: Collection[str] = ()) -> Update:
    """Return the value of a word. An empty text and the ignored words change nothing. Case and outer white
    space are ignored, unless two words differ only in case.

    Raise `UnknownValue` for other texts.
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
    raise UnknownValue(text, one_of(words), key)


def read_parts(*reads: Callable[[], Update]) -> Update:
    """Return the values of all parts of a message. If several parts raise `UnknownWord`, raise the first, with the
    values of all parts."""
    update: dict[str, Value] = {}
    faults: list[UnknownWord] = []
    for read in reads:
        try:
            update.update(read())
        except UnknownWord as fault:
            faults.append(fault)
            update.update(fault.update)
    if not faults:
        return update
    faults[0].update = update
    try:
        raise faults[0]
    finally:
        faults.clear()  # break the cycle of an error and its frame


class WordParser(Struct, frozen=True, gc=False):
    """Parses words with `read_word`. By default, the attribute is the entity's custom attribute."""

    words: Mapping[str, Value]
    attribute: str = ""
    ignored: tuple[str, ...] = ()

    def __call__(self, entity: Any, text: str) -> Update:
        return read_word(text, self.words, self.attribute or entity.custom_key, ignored=self.ignored)
