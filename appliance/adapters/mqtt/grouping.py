"""Groups announcements into devices, and assigns each device an id."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from appliance.adapters.mqtt.discovery import Announcement

NAME_DIGITS = 6
"""Number of hexadecimal digits that distinguish ambiguous slugs."""


def slug(text: str) -> str:
    """Convert text to lower case, and replace all characters except a-z and 0-9 with underscores."""
    return re.sub(r"[^a-z0-9_]", "_", text.lower())


def slug_with_digits(identifier: str) -> str:
    """Return the slug, followed by the first digits of the identifier's SHA-256."""
    return f"{slug(identifier)}_{digits_of(identifier)}"


def digits_of(text: str) -> str:
    """Return the first digits of the text's SHA-256, to distinguish identifiers with the same slug."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:NAME_DIGITS]


class DeviceNames:
    """The unique slug of each announced identifier. A slug does not change while its identifier is announced.

    Digits are added if the identifier has a letter or digit outside of ASCII, or if the plain slug is in use. Slugs
    from before a restart do not change.
    """

    def __init__(self) -> None:
        self._known: Mapping[str, str] = {}
        self._names: dict[str, str] = {}
        self._owners: dict[str, str] = {}

    def reserve(self, known: Mapping[str, str]) -> None:
        """Reserve the slugs of an earlier run for their identifiers."""
        self._known = known

    def name(self, identifier: str) -> str:
        if identifier not in self._names:
            plain, full = slug(identifier), slug_with_digits(identifier)
            is_taken = any(owners.get(plain, identifier) != identifier for owners in (self._owners, self._known))
            has_digits = any(each.isalnum() and not each.isascii() for each in identifier)
            self._names[identifier] = full if has_digits or is_taken or full in self._known else plain
            self._owners.setdefault(self._names[identifier], identifier)
        return self._names[identifier]

    def keep_only(self, identifiers: AbstractSet[str]) -> None:
        self._names = {identifier: name for identifier, name in self._names.items() if identifier in identifiers}
        self._owners = {name: identifier for identifier, name in self._names.items()}


def group_announcements(
    announcements: Iterable[Announcement],
    named: dict[str, list[Announcement]],
    names: DeviceNames,
    present: Container[str],
    doubles: dict[str, tuple[str, str]],
) -> Iterator[None]:
    """Fill `named` with each device's announcements by the device's slug. Each step handles one announcement.

    Entities with a common identifier or connection form one device. If several announcements have the same unique id,
    an announcement in `present` takes precedence, otherwise the first by topic. A migrating announcement is ignored
    once it has arrived at the new topic. `doubles` maps the key of each ignored announcement to the announcement's
    topic, and to the topic that is used instead.
    """
    chosen: dict[tuple[str, str], Announcement] = {}
    for each in announcements:
        other = chosen.setdefault((each.component, each.unique_id or each.key), each)
        if other is not each:
            pair = sorted((each, other), key=lambda one: (one.is_migrating, one.key not in present, one.key))
            chosen[each.component, each.unique_id or each.key] = pair[0]
            if not pair[1].is_migrating:
                doubles[pair[1].key] = pair[1].source, pair[0].source
        yield
    roots: dict[str, str] = {}
    for each in chosen.values():
        first, *others = _markers(each)
        for marker in others:
            roots[_root(roots, marker)] = _root(roots, first)
        yield
    together: dict[str, list[Announcement]] = {}
    for each in chosen.values():
        together.setdefault(_root(roots, _markers(each)[0]), []).append(each)
        yield
    identifiers: set[str] = set()
    for members in together.values():
        identifier = identifier_of(members)
        identifiers.add(identifier)
        named[names.name(identifier)] = sorted(members, key=lambda each: each.key)
        yield
    names.keep_only(identifiers)


def _markers(announcement: Announcement) -> list[str]:
    """Return the identifiers and connections that link an announcement to its device. If the announcement has
    neither, return the announcement's own id."""
    facts = announcement.device
    found = [f"identifier {each}" for each in facts.identifiers] + [
        f"connection {each}" for each in facts.connections
    ]
    return found or [f"alone {announcement.unique_id or announcement.object_id}"]


def _root(roots: dict[str, str], marker: str) -> str:
    """Return the representative of all markers joined with this marker. Each call halves the path to the
    representative."""
    while (above := roots.get(marker, marker)) != marker:
        roots[marker] = marker = roots.get(above, above)
    return marker


def identifier_of(members: Sequence[Announcement]) -> str:
    """Return the identifier that names a device, independently of the order of announcements."""
    identifiers = [each.device.identifiers[0] for each in members if each.device.identifiers]
    connections = [each.device.connections[0] for each in members if each.device.connections]
    alone = [each.unique_id or each.object_id for each in members]
    return min(identifiers or connections or alone, key=lambda each: (slug(each), each))
