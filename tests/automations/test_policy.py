"""Cooldown and dedupe: when they are taken and given back, over restarts, and when the clock is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest

from appliance.automations.policy import (
    MAX_REMEMBERED,
    Memory,
    Policy,
    decide,
    failed,
    fingerprint,
    never_began,
    succeeded,
)
from tests.automations.homes import NOW
from tests.fakes.rows import each_row

COOL = Policy(cooldown_secs=60)
ONCE = Policy(dedupe_window_secs=60)
BOTH = Policy(cooldown_secs=10, dedupe_window_secs=60)
FREE = Policy()

A, B = {"type": "device_state_change", "value": 1}, {"type": "device_state_change", "value": 2}


class Story:
    """One automation's decisions in a row, at seconds after the start."""

    def __init__(self, policy: Policy, memory: Memory | None = None, start: datetime = NOW) -> None:
        self.policy, self.memory, self.start = policy, memory or Memory(), start

    def ask(self, secs: float, event: Mapping[str, Any] = A) -> str:
        """Why the event may not run the automation; empty if it may."""
        decision = decide(self.policy, self.memory, event, self.at(secs))
        self.memory = decision.memory
        return decision.refusal or ""

    def ends_well(self, secs: float) -> None:
        """The run ends."""
        self.memory = succeeded(self.memory, self.at(secs))

    def fails(self) -> None:
        """The run fails."""
        self.memory = failed(self.memory)

    def restart(self) -> None:
        """The hub goes down and comes back with what was stored."""
        self.memory = Memory.from_json(orjson.loads(orjson.dumps(self.memory.to_json())))

    def at(self, secs: float) -> datetime:
        """The instant so many seconds after the start."""
        return self.start + timedelta(seconds=secs)


def test_without_a_policy_everything_may_run() -> None:
    story = Story(FREE)
    assert [story.ask(0), story.ask(0), story.ask(0)] == ["", "", ""]
    story.ends_well(1)
    assert story.memory == Memory()


def test_the_cooldown_is_taken_at_the_decision_so_a_burst_runs_once() -> None:
    story = Story(COOL)
    assert story.ask(0) == ""
    assert story.ask(0) == story.ask(0.001, B) == "cooldown: 60 s after the run that is in progress"


def test_the_cooldown_counts_from_the_end_of_a_good_run() -> None:
    story = Story(COOL)
    assert story.ask(0) == ""
    story.ends_well(100)
    assert story.ask(119) == "cooldown: 41 s more"
    assert story.ask(159.1) == "cooldown: 1 s more"
    assert story.ask(159.999) == "cooldown: 1 s more"
    assert story.ask(160) == ""


def test_what_the_cooldown_suppresses_does_not_prolong_it() -> None:
    story = Story(COOL)
    story.ask(0)
    story.ends_well(0)
    assert [story.ask(secs) != "" for secs in (10, 30, 59, 60)] == [True, True, True, False]


def test_a_run_that_fails_gives_the_cooldown_back() -> None:
    story = Story(COOL)
    assert story.ask(0) == ""
    story.fails()
    assert story.ask(0.1) == ""


def test_a_run_that_fails_does_not_give_back_its_event_but_one_that_never_began_does() -> None:
    story = Story(BOTH)
    assert story.ask(0) == ""
    story.fails()
    assert story.ask(1) == "duplicate: the same event came 1 s ago, 59 s more"
    assert story.ask(1, B) == ""
    story.memory = never_began(story.memory, B)
    assert story.ask(2, B) == ""


def test_the_same_event_runs_once_a_window_and_is_not_prolonged() -> None:
    story = Story(ONCE)
    assert story.ask(0) == ""
    assert story.ask(0, B) == ""
    assert story.ask(30.5) == "duplicate: the same event came 30 s ago, 30 s more"
    assert story.ask(59.9) == "duplicate: the same event came 59 s ago, 1 s more"
    assert story.ask(60) == ""
    assert story.ask(119) != ""


def test_an_event_that_the_cooldown_refused_is_not_remembered() -> None:
    story = Story(BOTH)
    story.ask(0)
    story.ends_well(0)
    assert story.ask(5, B).startswith("cooldown:")
    assert story.ask(10, B) == ""


@each_row(
    ("one", "other", "is_same"),
    [
        ({"type": "x", "value": 5}, {"value": 5.0, "type": "x"}, True),
        ({"type": "x", "value": True}, {"type": "x", "value": 1}, False),
        ({"type": "x", "scheduled_at": "a"}, {"type": "x", "scheduled_at": "b"}, True),
        ({"type": "x", "scheduled_at": "a"}, {"type": "x"}, True),
        ({"type": "x", "previous_value": 1}, {"type": "x", "previous_value": 2}, False),
        ({"attributes": {"a": [1, 2.0]}}, {"attributes": {"a": [1.0, 2]}}, True),
        ({"attributes": {"a": [1, 2]}}, {"attributes": {"a": [2, 1]}}, False),
        ({"attributes": {"scheduled_at": 1}}, {"attributes": {"scheduled_at": 2}}, False),
        ({"value": "5"}, {"value": 5}, False),
        ({"value": 2**63}, {"value": float(2**63)}, True),
        ({"value": "\ud800"}, {"value": "\ud801"}, False),
    ],
)
def test_the_whole_event_is_compared_but_when_it_was_due(
    one: dict[str, Any], other: dict[str, Any], is_same: bool
) -> None:
    assert (fingerprint(one) == fingerprint(other)) is is_same


def test_both_survive_a_restart() -> None:
    story = Story(BOTH)
    story.ask(0)
    story.ends_well(5)
    story.restart()
    assert story.ask(14) == "cooldown: 1 s more"
    assert story.ask(15) == "duplicate: the same event came 15 s ago, 45 s more"
    story.restart()
    assert story.ask(60) == ""


def test_a_run_that_a_restart_cut_off_gives_the_cooldown_back() -> None:
    story = Story(COOL)
    story.ask(0)
    story.restart()
    assert story.ask(1) == ""


@each_row(
    "raw",
    [
        None,
        [],
        "x",
        {"ended_at": "yesterday", "decided": [1]},
        {"ended_at": True, "decided": {"a": None}},
        {"ended_at": 1e300, "decided": {"a": -(2**62)}},
    ],
)
def test_a_memory_that_cannot_be_read_is_forgotten(raw: Any) -> None:
    assert Memory.from_json(raw) == Memory()


@pytest.mark.parametrize("years", [-56, 56])
@pytest.mark.parametrize("policy", [COOL, ONCE])
def test_a_clock_that_was_wrong_by_years_holds_nothing_up_for_longer_than_once(policy: Policy, years: int) -> None:
    story = Story(policy, start=NOW + timedelta(days=365 * years))
    story.ask(0)
    story.ends_well(0)
    story.start = NOW
    assert "" in (story.ask(0), story.ask(60))


def test_a_step_back_starts_the_count_anew_and_a_small_one_is_no_gap() -> None:
    story = Story(COOL)
    story.ask(0)
    story.ends_well(0)
    assert story.ask(-3600) == "cooldown: 60 s more"
    assert story.ask(-3541) == "cooldown: 1 s more"
    assert story.ask(-3540) == ""


def test_a_policy_that_was_switched_off_or_shortened_by_a_reload_is_so_at_once() -> None:
    story = Story(COOL)
    story.ask(0)
    story.policy = FREE
    assert story.ask(1) == ""
    story = Story(COOL)
    story.ask(0)
    story.ends_well(0)
    story.policy = Policy(cooldown_secs=5)
    assert story.ask(4) == "cooldown: 1 s more"
    assert story.ask(5) == ""


def test_no_more_than_so_many_events_are_remembered_and_none_that_expired() -> None:
    decided = {fingerprint({"value": n}): NOW for n in range(MAX_REMEMBERED)}
    story = Story(Policy(dedupe_window_secs=86400), Memory(decided=decided))
    for n in range(MAX_REMEMBERED, MAX_REMEMBERED + 5):
        assert story.ask(n / 1000, {"value": n}) == ""
    assert len(story.memory.decided) == MAX_REMEMBERED
    assert story.ask(10, {"value": 5}) != ""
    assert story.ask(10, {"value": 4}) == ""
    assert story.ask(86400 * 2, {"value": 1}) == ""
    assert len(story.memory.decided) == 1
