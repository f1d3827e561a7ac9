"""The ids of announced devices: slugs that do not change while their device is announced."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

SLUG_DIGITS = 6
"""Number of hexadecimal digits that distinguish ambiguous slugs."""


def slug(text: str) -> str:
    """Convert text to lower case, and replace all characters except a-z and 0-9 with underscores."""
    return re.sub(r"[^a-z0-9_]", "_", text.lower())


def slug_with_digits(identifier: str) -> str:
    """Return the slug, followed by the first digits of the identifier's SHA-256."""
    return f"{slug(identifier)}_{digits_of(identifier)}"


def digits_of(text: str) -> str:
    """Return the first digits of the text's SHA-256, to distinguish identifiers with the same slug."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:SLUG_DIGITS]


class DeviceSlugs:
    """The unique slug of each announced identifier. A slug does not change while its identifier is announced.

    Digits are added if the identifier has a letter or digit outside of ASCII, or if the plain slug is in use. Slugs
    from before a restart do not change.
    """

    def __init__(self) -> None:
        self._known: Mapping[str, str] = {}
        self._slugs: dict[str, str] = {}
        self._owners: dict[str, str] = {}

    def reserve(self, known: Mapping[str, str]) -> None:
        """Reserve the slugs of an earlier run for their identifiers."""
        self._known = known

    def slug_of(self, identifier: str, earlier: str = "") -> str:
        """Return the slug. If an earlier version knew the device by the identifier `earlier`, its slug remains."""
        if identifier not in self._slugs:
            plain, full = slug(identifier), slug_with_digits(identifier)
            is_taken = any(owners.get(plain, identifier) != identifier for owners in (self._owners, self._known))
            is_shortened = any(each.isalnum() and not each.isascii() for each in identifier)
            is_known = plain not in self._owners and self._known.get(plain) in (identifier, earlier or identifier)
            needs_digits = full in self._known or (not is_known and (is_taken or is_shortened))
            self._slugs[identifier] = full if needs_digits else plain
            self._owners.setdefault(self._slugs[identifier], identifier)
        return self._slugs[identifier]

    def keep_only(self, identifiers: AbstractSet[str]) -> None:
        self._slugs = {identifier: each for identifier, each in self._slugs.items() if identifier in identifiers}
        self._owners = {each: identifier for identifier, each in self._slugs.items()}
