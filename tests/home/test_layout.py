"""The numbers of rooms, groups, and members are limited. When a limit is reached, existing rooms and groups can
still be changed or made smaller."""

from __future__ import annotations

import time

import pytest

from appliance.errors import Invalid
from appliance.home.layout import MAX_GROUPS, MAX_MEMBERS, MAX_ROOMS, Layout
from appliance.home.model import Group, Room

MANY = tuple(f"a:{number}" for number in range(MAX_MEMBERS))


def test_the_number_of_rooms_is_limited() -> None:
    layout = Layout(rooms={str(number): Room(id=str(number), name="Room") for number in range(MAX_ROOMS)})
    assert layout.put_room(Room(id="7", name="Kitchen")).rooms["7"].name == "Kitchen"
    with pytest.raises(Invalid, match=r"^room 'new': there are 1000 rooms already; remove one first$"):
        layout.put_room(Room(id="new", name="New"))
    assert "new" in layout.remove_room("7").put_room(Room(id="new", name="New")).rooms


def test_the_number_of_groups_is_limited() -> None:
    layout = Layout(groups={str(number): Group(id=str(number), name="Group") for number in range(MAX_GROUPS)})
    assert layout.put_group("7", "Lamps", None, {}).groups["7"].name == "Lamps"
    with pytest.raises(Invalid, match=r"^group 'new': there are 1000 groups already; remove one first$"):
        layout.put_group("new", "New", None, {})


def test_the_members_of_all_groups_share_a_limit() -> None:
    groups = {"big": Group(id="big", name="Big", members=MANY), "old": Group(id="old", name="Old", members=("b:1",))}
    layout = Layout(groups={**groups, "small": Group(id="small", name="Small")}, room_assignments={})
    with pytest.raises(
        Invalid, match=r"^group 'old': all groups together can have 20000 members, not 20002; remove some"
    ):
        layout.put_group("old", "Old", ("b:1", "b:2"), {"b:2": None})  # type: ignore[dict-item]
    assert layout.put_group("old", "New", None, {}).groups["old"].members == ("b:1",), "beyond the limit already"
    began = time.process_time()
    assert len(layout.set_members("big", MANY[1:], {}).groups["big"].members) == MAX_MEMBERS - 1
    assert time.process_time() - began < 0.3, "each member is looked up once"
