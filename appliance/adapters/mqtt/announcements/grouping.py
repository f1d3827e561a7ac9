"""Groups announcements into devices."""

from __future__ import annotations

from collections.abc import Container, Generator, Iterable, Sequence

from appliance.adapters.mqtt.announcements.announcement import Announcement
from appliance.adapters.mqtt.announcements.device_ids import DeviceSlugs, slug, slug_with_digits

MARKER_KINDS = ("identifier", "connection", "alone")


def group_announcements(
    announcements: Iterable[Announcement],
    slugs: DeviceSlugs,
    present: Container[str],
    newcomers: Container[str] = (),
) -> Generator[None, None, tuple[dict[str, list[Announcement]], dict[str, tuple[str, str]]]]:
    """Return each device's announcements by the device's slug, and the ignored announcements. Each step handles one
    announcement.

    Entities with a common identifier or connection form one device. If several announcements have the same unique id,
    the topics in `newcomers` come last, then an announcement in `present` takes precedence, otherwise the first by
    topic. A migrating announcement is ignored once it has arrived at the new topic. The second result maps the key of
    each ignored announcement to the announcement's topic, and to the topic that is used instead.
    """
    chosen: dict[tuple[str, str], Announcement] = {}
    doubles: dict[str, tuple[str, str]] = {}
    for each in announcements:
        other = chosen.setdefault((each.component, each.unique_id or each.key), each)
        if other is not each:
            pair = sorted(
                (each, other),
                key=lambda one: (one.is_migrating, one.source in newcomers, one.key not in present, one.key),
            )
            chosen[each.component, each.unique_id or each.key] = pair[0]
            if not pair[1].is_migrating:
                doubles[pair[1].key] = pair[1].source, pair[0].source
        yield
    roots: dict[str, str] = {}
    for each in chosen.values():
        first, *others = markers_of(each)
        for marker in others:
            roots[_root(roots, marker)] = _root(roots, first)
        yield
    together: dict[str, list[Announcement]] = {}
    for each in chosen.values():
        together.setdefault(_root(roots, markers_of(each)[0]), []).append(each)
        yield
    by_slug: dict[str, list[Announcement]] = {}
    identifiers: set[str] = set()
    for members in sorted(together.values(), key=lambda each: _earlier_identifier(each) != ""):
        identifier = identifier_of(members)
        identifiers.add(identifier)
        chosen_slug = slugs.slug_of(identifier, _earlier_identifier(members))
        by_slug[chosen_slug] = sorted(members, key=lambda each: each.key)
        yield
    slugs.keep_only(identifiers)
    return by_slug, doubles


def markers_of(announcement: Announcement) -> list[str]:
    """Return the identifiers and connections that link an announcement to its device, each after its kind. If the
    announcement has neither, return the announcement's own id."""
    facts = announcement.device
    found = [f"identifier {each}" for each in facts.identifiers] + [
        f"connection {each}" for each in facts.connections
    ]
    return found or [f"alone {announcement.own_id}"]


def slug_markers_of(announcement: Announcement) -> list[str]:
    """Return the slugs that the announcement's device can have, each after the word `slug`."""
    texts = [each.partition(" ")[2] for each in markers_of(announcement)]
    return [f"slug {convert(each)}" for each in texts for convert in (slug, slug_with_digits)]


def _earlier_identifier(members: Sequence[Announcement]) -> str:
    """Return the identifier of earlier versions for a device whose id comes from a name with replaced characters.
    Return an empty string for all other devices."""
    first = members[0]
    has_own_name = not (first.device.identifiers or first.device.connections or first.unique_id)
    return first.object_id if has_own_name and first.own_id != first.object_id else ""


def _root(roots: dict[str, str], marker: str) -> str:
    """Return the representative of all markers joined with this marker. Each call halves the path to the
    representative."""
    while (above := roots.get(marker, marker)) != marker:
        roots[marker] = marker = roots.get(above, above)
    return marker


def identifier_of(members: Sequence[Announcement]) -> str:
    """Return the identifier that determines a device's slug, independently of the order of announcements."""
    identifiers = [each.device.identifiers[0] for each in members if each.device.identifiers]
    connections = [each.device.connections[0] for each in members if each.device.connections]
    return min(identifiers or connections or [each.own_id for each in members], key=lambda each: (slug(each), each))
