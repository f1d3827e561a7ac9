"""The bus: the order of events, and the listeners of each event."""

from __future__ import annotations

from appliance.home import events
from appliance.home.bus import Bus, Rank


def news(number: int) -> events.Event:
    """Return one of many different events."""
    return events.SystemErrorReported(message=str(number))


def test_every_listener_gets_every_event_in_order() -> None:
    bus, one, other = Bus(), list[events.Event](), list[events.Event]()
    bus.listen(one.append)
    bus.listen(other.append)
    for number in range(5):
        bus.publish(news(number))
    assert one == other == [news(number) for number in range(5)]


def test_a_listener_gets_no_event_from_before_its_start_or_after_its_end() -> None:
    bus, received = Bus(), list[events.Event]()
    bus.publish(news(1))
    leave = bus.listen(received.append)
    bus.publish(news(2))
    leave()
    bus.publish(news(3))
    assert received == [news(2)]


def test_a_listener_that_leaves_or_adds_another_does_not_disturb_others() -> None:
    bus, late, last = Bus(), list[events.Event](), list[events.Event]()

    def once(_: events.Event) -> None:
        leave()
        bus.listen(late.append)

    leave = bus.listen(once)
    bus.listen(last.append)
    bus.publish(news(1))
    bus.publish(news(2))
    assert last == [news(1), news(2)]
    assert late == [news(2)]


def test_listeners_are_called_by_rank_and_then_in_the_order_of_their_registration() -> None:
    bus, called = Bus(), list[str]()
    for number in "12":
        for rank in reversed(Rank):
            bus.listen(lambda _, name=f"{rank.name}{number}": called.append(name), rank=rank)  # type: ignore[misc]
    bus.publish(news(1))
    assert called == ["CLIENT1", "CLIENT2", "USUAL1", "USUAL2", "RECORD1", "RECORD2"]


def test_a_listener_for_kinds_gets_only_their_events() -> None:
    bus, some, every = Bus(), list[events.Event](), list[events.Event]()
    bus.listen(some.append, events.DeviceRemoved, events.RoomRemoved)
    device, room = events.DeviceRemoved(device_id="a:1"), events.RoomRemoved(room_id="r")
    for published in (device, room, events.GroupRemoved(group_id="g")):
        bus.publish(published)
    leave = bus.listen(every.append)
    bus.publish(device)
    leave()
    bus.publish(device)
    assert some == [device, room, device, device] and every == [device]
