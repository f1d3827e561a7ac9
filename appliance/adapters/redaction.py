"""Removes the secrets of a section from logs, errors, recordings, and devices.

A Lua file controls the text and the number of secrets. Therefore the time depends on the length of the text, but not
on the number of secrets.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote

from appliance.computing import compute_apart
from appliance.tables.checks import is_number

HIDDEN = "***"

_IN_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_IN_ATTRIBUTE = {**_IN_TEXT, **str.maketrans({'"': "&quot;", "'": "&#x27;"})}
"""Escapes for the characters that XML and HTML escape in texts and attributes. Python's module `html` is not used,
because it takes 0.3 MB."""

MIN_SECRET_CHARS = 3
"""Minimum length of a secret that is replaced in texts. Shorter secrets could occur in any text."""

MIN_SHOWN_CHARS, MIN_SHOWN_KEPT_CHARS = 8, 16
"""Minimum length of a secret or kept text that is replaced in the values of devices. A shorter text can be an
ordinary value, such as `50` or `fan_only`."""

MAX_SECRETS = 300
"""Maximum number of a section's secrets that are replaced. The longest secrets take precedence."""

MAX_SHARING = 2
"""Among secrets with the same beginning, the maximum number that is compared. If more secrets have the same
beginning, the whole word is replaced."""

_BEGINNINGS = (16, 8, 7, 6, 5, 4, 3)
"""Lengths of the prefixes with which the search finds a secret, longest first."""

MIN_WORD_CHARS, _SCHEMES = 6, frozenset({"bearer", "digest"})

_WORD = re.compile(r"""[^\s"'<>]*""")
_URL_SAFE = str.maketrans("+/", "-_")


class SecretTexts(Protocol):
    """A changeable collection of secret texts."""

    @property
    def secrets(self) -> Sequence[str]:
        """The secret texts. Each change creates a new object."""


class _NoTexts:
    secrets: Sequence[str] = ()


_NO_TEXTS = _NoTexts()


class Redaction:
    """Replaces the secrets of a section in texts, including their forms in URLs, JSON, XML, base64, and hex."""

    def __init__(self, secrets: Sequence[str], kept: SecretTexts = _NO_TEXTS) -> None:
        self._secrets = secrets
        self._kept = kept
        self._known: Sequence[str] | None = None
        self._texts = self._devices = _Search(())

    async def prepare(self) -> None:
        """If the secrets have changed, update the search on a thread. If this method is not called, the next use
        updates the search on the event loop."""
        if self._known is not self._kept.secrets:
            self._use(*await compute_apart(self._build, self._kept.secrets))

    def __call__(self, text: str) -> str:
        """Replace the secrets in a text."""
        return self._search().hide(text)

    def has_secrets(self) -> bool:
        return bool(self._search().forms)

    def in_value(self, value: Any) -> Any:
        """Replace the secrets in a JSON value."""
        return _without(self._search(), value)

    def in_device(self, value: Any) -> Any:
        """Replace the secrets in a device's values. Short secrets are not replaced, because they can be an ordinary
        word or reading."""
        self._search()
        return _without(self._devices, value)

    def _search(self) -> _Search:
        if self._known is not self._kept.secrets:
            self._use(*self._build(self._kept.secrets))
        return self._texts

    def _build(self, kept: Sequence[str]) -> tuple[Sequence[str], _Search, _Search]:
        texts = _Search(_longest(MIN_SECRET_CHARS, self._secrets, kept))
        shown = _longest(MIN_SHOWN_CHARS, self._secrets, _at_least(MIN_SHOWN_KEPT_CHARS, kept))
        return kept, texts, _Search(shown)

    def _use(self, known: Sequence[str], texts: _Search, devices: _Search) -> None:
        self._known, self._texts, self._devices = known, texts, devices


def secret_words(texts: Iterable[str]) -> list[str]:
    """Return the words that can be secrets, from the values of headers. Omit short words and the names of
    authentication schemes."""
    words = [word for text in texts for word in text.split()]
    return [word for word in words if len(word) >= MIN_WORD_CHARS and word.lower() not in _SCHEMES]


def texts_in(value: Any) -> list[str]:
    """List every text and number in a JSON value, as text."""
    if is_number(value):
        return [str(value)]
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return [text for each in inner for text in texts_in(each)]


def count_characters(value: Any, most: int) -> int:
    """Return the approximate size of a JSON value in characters. Stop counting when the size exceeds `most`."""
    if isinstance(value, str):
        return len(value) + 1
    inner = [*value, *value.values()] if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    total = 1
    for each in inner:
        total += count_characters(each, most - total)
        if total > most:
            break
    return total


class _Search:
    """Finds all forms of the secrets by their beginnings."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self.forms = {form for each in secrets for form in _forms(each) if len(form) >= MIN_SECRET_CHARS}
        self._by_beginning: dict[str, list[str]] = {}
        for form in sorted(self.forms, key=len, reverse=True):
            length = next(each for each in _BEGINNINGS if each <= len(form))
            self._by_beginning.setdefault(form[:length], []).append(form)
        self._lengths = [each for each in _BEGINNINGS if any(len(form) == each for form in self._by_beginning)]
        self._first = {form[:MIN_SECRET_CHARS] for form in self._by_beginning}
        self._shortest = min(map(len, self.forms), default=0)

    def hide(self, text: str) -> str:
        if not self.forms or len(text) < self._shortest:
            return text
        parts, end, first = [], 0, self._first
        for start in [at for at in range(len(text) - 2) if text[at : at + 3] in first]:
            if start >= end and (length := self._length_at(text, start)):
                parts += [text[end:start], HIDDEN]
                end = start + length
        return "".join([*parts, text[end:]]) if parts else text

    def _length_at(self, text: str, start: int) -> int:
        """Return the length of the secret at this index, or 0."""
        for length in self._lengths:
            sharing = self._by_beginning.get(text[start : start + length])
            if sharing is None:
                continue
            for form in sharing[:MAX_SHARING]:
                if text.startswith(form, start):
                    return len(form)
            if len(sharing) > MAX_SHARING:
                return _WORD.match(text, start + length).end() - start  # type: ignore[union-attr]
        return 0


def _longest(least: int, *secrets: Sequence[str]) -> list[str]:
    """Return the longest secrets of at least this length, within `MAX_SECRETS`."""
    found = _at_least(least, [each for texts in secrets for each in texts])
    return sorted(found, key=len, reverse=True)[:MAX_SECRETS]


def _at_least(least: int, texts: Sequence[str]) -> list[str]:
    return [each for each in texts if len(each) >= least]


def _without(search: _Search, value: Any) -> Any:
    if not search.forms:
        return value
    if isinstance(value, str):
        return search.hide(value)
    if is_number(value):
        return HIDDEN if str(value) in search.forms else value
    if isinstance(value, Mapping):
        return {_without(search, name): _without(search, each) for name, each in value.items()}
    return [_without(search, each) for each in value] if isinstance(value, list) else value


def _forms(secret: str) -> set[str]:
    """Return the unchanged secret, and its forms in URLs, JSON, XML, base64, and hex.

    For base64, include forms that do not depend on the text around the secret. With Basic authentication, for
    example, a user name precedes the secret.
    """
    quoted = quote(secret, safe="")
    urls = [each for url in (quoted, _lower_escapes(quoted)) for each in _url_forms(url)]
    in_json = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    raw = secret.encode(errors="surrogatepass")
    in_base64 = [_inner_base64(raw, before) for before in range(3)] if len(raw) > MIN_SECRET_CHARS else []
    in_base64.append(base64.b64encode(raw).decode().rstrip("="))
    return {
        *(secret, secret.translate(_IN_TEXT), secret.translate(_IN_ATTRIBUTE), raw.hex(), raw.hex().upper()),
        *urls,
        *(*in_json, *(each.replace("/", "\\/") for each in in_json)),
        *(*in_base64, *(each.translate(_URL_SAFE) for each in in_base64)),
    }


def _url_forms(quoted: str) -> tuple[str, ...]:
    """Return the forms of a percent-encoded text in a path, in a query, and in an HTML form."""
    with_slash = quoted.replace("%2F", "/").replace("%2f", "/")
    return quoted, with_slash, quoted.replace("%20", "+"), with_slash.replace("%20", "+")


def _lower_escapes(quoted: str) -> str:
    return re.sub("%..", lambda found: found[0].lower(), quoted)


def _inner_base64(raw: bytes, before: int) -> str:
    """Return the base64 characters that depend only on these bytes if the bytes follow `before` other bytes."""
    encoded = base64.b64encode(bytes(before) + raw).decode()
    return encoded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
