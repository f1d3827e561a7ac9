"""Which announcements are one device, and the ids of devices: stable, and no two the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from appliance.adapters.mqtt.announcements import Announcement, DeviceFacts
from appliance.adapters.mqtt.device_groups import DeviceNames, grouping


def entity(number: int, *identifiers: str) -> Announcement:
    return Announcement(
        key=f"s{number}", source=f"homeassistant/sensor/s{number}/config", component="sensor", origin="", config={},
        object_id=f"s{number}", unique_id=f"u{number}", device=DeviceFacts(identifiers=identifiers),
    )  # fmt: skip


def groups(announced: Iterable[Announcement], names: DeviceNames | None = None) -> dict[str, list[Announcement]]:
    named: dict[str, list[Announcement]] = {}
    for _ in grouping(announced, named, names or DeviceNames()):
        pass
    return named


def names_of(*identifiers: str, names: DeviceNames | None = None) -> list[str]:
    return list(groups([entity(number, each) for number, each in enumerate(identifiers)], names))


def digits(identifier: str) -> str:
    return hashlib.sha256(identifier.encode()).hexdigest()[:6]


def test_slugs_are_those_of_the_identifier_with_digits_where_they_would_not_tell_it_apart() -> None:
    table: Sequence[tuple[tuple[str, ...], list[str]]] = [
        (("0x00158D01",), ["0x00158d01"]),
        (("кухня", "гараж"), [f"______{digits('кухня')}", f"______{digits('гараж')}"]),
        (("Küche",), [f"k_che_{digits('Küche')}"]),
        (("٣",), [f"__{digits('٣')}"]),
        (("lamp – 1", "💡"), ["lamp___1", "_"]),
        (("a-b", "a_b", "a b"), ["a_b", f"a_b_{digits('a_b')}", f"a_b_{digits('a b')}"]),
    ]
    for identifiers, expected in table:
        assert names_of(*identifiers) == expected


def test_a_device_keeps_its_id_whatever_is_announced_before_it_later_or_after_a_restart() -> None:
    names = DeviceNames()
    first = f"a_b_{digits('a_b')}"
    assert names_of("a-b", "a_b", names=names) == ["a_b", first]
    assert names_of("a_b", "a-b", names=names) == [first, "a_b"]
    assert names_of("a_b", names=names) == [first]
    restarted = DeviceNames()
    restarted.known = {"a_b": "a-b", first: "a_b"}
    assert names_of("a_b", "a-b", names=restarted) == [first, "a_b"]
    newcomer = DeviceNames()
    newcomer.known = {"a_b": "a-b"}
    assert names_of("a b", "a-b", names=newcomer) == [f"a_b_{digits('a b')}", "a_b"]


def test_ten_thousand_identifiers_chained_to_each_other_are_one_device_in_few_steps_each() -> None:
    for order in (1, -1):
        chain = [entity(number, f"i{number}", f"i{number + 1}") for number in range(10_000)][::order]
        named: dict[str, list[Announcement]] = {}
        steps = sum(1 for _ in grouping(chain, named, DeviceNames()))
        assert [len(members) for members in named.values()] == [10_000]
        assert steps < 4 * len(chain)
