"""The bus and its readers' mailboxes: order, bounds, and the count of what was missed."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from appliance.home import events
from appliance.home.bus import Bus, Mailbox


def news(number: int) -> events.Event:
    """One of many different events."""
    return events.SystemError(message=str(number))


def test_everybody_hears_everything_in_the_order_of_publishing() -> None:
    bus, one, other = Bus(), list[events.Event](), list[events.Event]()
    bus.listen(one.append)
    bus.listen(other.append)
    for number in range(5):
        bus.publish(news(number))
    assert one == other == [news(number) for number in range(5)]


def test_listeners_are_called_in_the_order_in_which_they_came_and_before_publish_returns() -> None:
    bus, heard = Bus(), list[str]()
    bus.listen(lambda _: heard.append("first"))
    bus.listen(lambda _: heard.append("second"))
    bus.publish(news(1))
    assert heard == ["first", "second"]


def test_a_listener_hears_nothing_from_before_it_came_and_nothing_after_it_left() -> None:
    bus, heard = Bus(), list[events.Event]()
    bus.publish(news(1))
    leave = bus.listen(heard.append)
    bus.publish(news(2))
    leave()
    bus.publish(news(3))
    assert heard == [news(2)]


def test_a_listener_that_leaves_or_brings_another_while_it_listens_disturbs_nobody() -> None:
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


def test_the_bus_counts_what_it_carried_whether_anybody_listens_or_not() -> None:
    bus = Bus()
    bus.publish(news(1))
    bus.listen(lambda _: None)
    bus.publish(news(2))
    assert bus.published == 2


async def test_a_mailbox_gives_its_items_in_order_and_no_more_than_asked_for() -> None:
    mailbox = Mailbox[int](10)
    for number in range(5):
        mailbox.put(number)
    assert await mailbox.take(2) == (0, [0, 1])
    assert await mailbox.take(1) == (0, [2])
    assert await mailbox.take(9) == (0, [3, 4])


@pytest.mark.parametrize(
    ("capacity", "put", "missed", "kept"),
    [
        (1, 1, 0, [0]),
        (1, 2, 1, [1]),
        (1, 9, 8, [8]),
        (3, 2, 0, [0, 1]),
        (3, 3, 0, [0, 1, 2]),
        (3, 4, 1, [1, 2, 3]),
        (3, 7, 4, [4, 5, 6]),
    ],
)
async def test_a_full_mailbox_drops_the_oldest_and_counts_them(
    capacity: int, put: int, missed: int, kept: list[int]
) -> None:
    mailbox = Mailbox[int](capacity)
    for number in range(put):
        mailbox.put(number)
    assert await mailbox.take(100) == (missed, kept)


async def test_what_was_missed_is_told_once() -> None:
    mailbox = Mailbox[int](2)
    for number in range(5):
        mailbox.put(number)
    assert await mailbox.take(1) == (3, [3])
    assert await mailbox.take(1) == (0, [4])
    mailbox.put(5)
    assert await mailbox.take(1) == (0, [5])


async def test_a_reader_waits_until_there_is_something_and_wakes_for_it() -> None:
    mailbox = Mailbox[int](2)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(mailbox.take(5))
        await asyncio.sleep(0)
        assert not reading.done()
        mailbox.put(1)
        mailbox.put(2)
    assert reading.result() == (0, [1, 2])


async def test_an_emptied_mailbox_makes_its_reader_wait_again() -> None:
    mailbox = Mailbox[int](2)
    mailbox.put(1)
    await mailbox.take(1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await mailbox.take(1)


async def test_a_reader_that_gives_up_waiting_takes_nothing_with_it() -> None:
    mailbox = Mailbox[int](2)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await mailbox.take(1)
    mailbox.put(1)
    assert await mailbox.take(1) == (0, [1])


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(capacity=st.integers(1, 4), steps=st.lists(st.none() | st.integers(1, 5), max_size=30))
def test_nothing_is_lost_without_being_counted(capacity: int, steps: list[int | None]) -> None:
    """None puts the next number, an integer takes so many; a plain model says what must come."""

    async def play() -> None:
        mailbox, waiting, missed = Mailbox[int](capacity), deque[int](), 0
        for number, step in enumerate(steps):
            if step is None:
                mailbox.put(number)
                missed += len(waiting) == capacity
                waiting = deque([*waiting, number], maxlen=capacity)
            elif waiting:
                expected = [waiting.popleft() for _ in range(min(step, len(waiting)))]
                assert await mailbox.take(step) == (missed, expected)
                missed = 0

    asyncio.run(play())
