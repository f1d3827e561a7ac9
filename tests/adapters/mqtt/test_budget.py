"""The budget of a broker: expensive messages wait, and cheap messages never wait for expensive messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import pytest

from appliance.adapters.mqtt import budget as budgets
from appliance.adapters.mqtt.budget import BURST_SECS, HEAVY_SHARE, Budget
from appliance.adapters.mqtt.inbox import MAX_WAITING_BYTES
from tests.fakes.clock import VirtualClock
from tests.fakes.rows import each_row


class Works:
    """Messages in a budget, and a record of their work."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.costly: list[str] = []
        self.done: list[str] = []
        self.budget = Budget(self.clock, self.costly.append, lambda _: True)

    def message(self, topic: str, text: str, steps: int = 1) -> None:
        deque(self.budget.run(topic, self._steps(text, steps), 1), maxlen=0)

    def resume(self) -> None:
        deque(self.budget.resume(), maxlen=0)

    def _steps(self, text: str, steps: int) -> Iterator[None]:
        for number in range(steps):
            self.done.append(f"{text}{number}")
            yield


def test_an_expensive_topic_waits_and_keeps_only_its_newest_message() -> None:
    works = Works()
    works.message("modest", "m")
    works.message("greedy", "a")
    works.budget.spend("greedy", 1.1, 1.1)
    works.message("greedy", "b")
    works.message("greedy", "c")
    works.message("modest", "d")
    works.resume()
    assert (works.done, works.costly, works.budget.dropped) == (["m0", "a0", "d0"], ["greedy"], 1)
    works.clock.suspend(10.5)
    works.resume()
    assert works.done == ["m0", "a0", "d0", "c0"] and not works.budget.parked


def test_an_expensive_message_is_interrupted_and_ends_later() -> None:
    works = Works()

    def work() -> Iterator[None]:
        for number in range(3):
            works.budget.spend("greedy", BURST_SECS * 2, 1)
            works.done.append(str(number))
            yield

    deque(works.budget.run("greedy", work(), 1), maxlen=0)
    assert works.done == ["0"]
    for expected in (["0", "1"], ["0", "1", "2"]):
        works.clock.suspend(3)
        works.resume()
        assert works.done == expected


@each_row(("heavy", "share"), [(1, 0.1), (3, 0.3), (20, 0.4), (150, 0.4)])
def test_cheap_topics_never_wait_for_expensive_ones(heavy: int, share: float) -> None:
    works, spent, at = Works(), 0.0, 0.0
    while at < 60:
        works.message("quiet", "q")
        assert "quiet" not in works.budget.parked
        for number in range(heavy):
            topic = f"heavy{number}"
            if not works.budget._must_wait(topic):
                works.budget.spend(topic, 0.02, 0.02)
                spent += 0.02
        at += 0.1
        works.clock.suspend(0.1)
    assert 0.5 * share < spent / at < 1.3 * share + 0.1


def test_while_expensive_topics_use_all_their_time_unknown_ones_wait_too() -> None:
    works = Works()
    works.message("quiet", "q")
    for number in range(150):
        works.budget.spend(f"heavy{number}", 0.02, 0.02)
    works.message("new", "n")
    works.message("quiet", "q")
    assert works.done == ["q0", "q0"] and [*works.budget.parked] == ["new"]
    assert works.costly == [], "the new topic is not known to be expensive"
    works.clock.suspend(150 * 0.02 / HEAVY_SHARE)
    works.resume()
    assert works.done == ["q0", "q0", "n0"]


def test_each_look_at_a_parked_topic_is_a_step() -> None:
    works = Works()
    works.budget.spend("heavy", 2 * BURST_SECS, 2 * BURST_SECS)
    for number in range(100):
        works.message(f"a/{number}", "a")
    assert len([*works.budget.resume()]) == len(works.budget.parked) == 100


def test_parked_messages_of_any_number_of_topics_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "MAX_PARKED", limit := 1_000)
    clock = VirtualClock()
    budget = Budget(clock, lambda _: None, lambda _: True)
    budget.spend("heavy", 2 * BURST_SECS, 2 * BURST_SECS)
    for number in range(limit + 2):
        deque(budget.run(f"a/{number}", iter([None]), 1), maxlen=0)
    assert (len(budget.parked), budget.dropped) == (limit, 2)
    assert "a/1" not in budget.parked and "a/2" in budget.parked
    for number in range(3):
        deque(budget.run("large", iter([None]), MAX_WAITING_BYTES - 10 + number), maxlen=0)
    assert [*budget.parked] == [*(f"a/{number}" for number in range(limit - 6, limit + 2)), "large"]
    clock.suspend(60)
    for _ in budget.resume():
        budget.clear()
    assert budget._parked_bytes == 0
