"""A line that repeats itself is written a few times, and then once a minute with the number of the others."""

from __future__ import annotations

import logging

from appliance.log_buffer import MAX_KINDS, MAX_SAME_KIND, MAX_SAME_LINES, MAX_TEXT_CHARS, RepetitionLimit


class Log:
    """A log whose time is told."""

    def __init__(self) -> None:
        self.limit = RepetitionLimit()
        self.now = 1_000_000.0
        self.written: list[str] = []

    def say(self, template: str, *arguments: object, level: int = logging.WARNING, line: int = 1) -> None:
        """Write an entry of this place in the code."""
        record = logging.LogRecord("hub", level, "file.py", line, template, arguments, None)
        record.created = self.now
        if self.limit.filter(record):
            self.written.append(record.getMessage())


def test_the_same_line_is_written_a_few_times_and_then_once_a_minute_with_its_number() -> None:
    log = Log()
    for _ in range(1000):
        log.say("no room for %s", "you")
    assert log.written == ["no room for you"] * MAX_SAME_LINES
    for minute in range(1, 4):
        log.now += 60.0
        for _ in range(1000):
            log.say("no room for %s", "you")
        held_back = 1000 - (MAX_SAME_LINES if minute == 1 else 1)
        assert log.written[MAX_SAME_LINES + minute - 1 :] == [
            f"no room for you (and {held_back} more like it before)"
        ]
    log.now += 120.0
    log.say("no room for %s", "you")
    log.now += 61.0
    log.written.clear()
    for _ in range(MAX_SAME_LINES):
        log.say("no room for %s", "you")
    assert log.written == ["no room for you"] * MAX_SAME_LINES, "the flood is over"


def test_lines_of_one_place_that_name_other_things_each_time_are_limited_too() -> None:
    log = Log()
    for number in range(1000):
        log.say("%s is refused", number)
    assert len(log.written) == MAX_SAME_KIND
    log.say("%s is refused", "another place", line=2)
    assert log.written[-1] == "another place is refused"
    log.now += 60.0
    log.say("%s is refused", "x")
    assert log.written[-1] == f"x is refused (and {1000 - MAX_SAME_KIND} more like it before)"


def test_what_scripts_write_is_limited_by_its_text_alone() -> None:
    log = Log()
    for number in range(1000):
        log.say("%s", f"line {number}")
    assert len(log.written) == 1000
    log.written.clear()
    for _ in range(1000):
        log.say("%s", "the same")
    assert len(log.written) == MAX_SAME_KIND


def test_a_clock_that_is_set_back_holds_nothing_back_for_long() -> None:
    log = Log()
    for _ in range(100):
        log.say("again")
    log.now -= 86_400.0
    log.say("again")
    assert log.written[-1] == "again (and 80 more like it before)"


def test_what_is_remembered_is_bounded() -> None:
    log = Log()
    for number in range(3 * MAX_KINDS):
        log.say("%s", f"line {number}")
    assert len(log.limit._windows) == MAX_KINDS


def test_a_line_is_never_longer_than_a_log_should_bear() -> None:
    log = Log()
    for number in range(100):
        log.say("%s", f"{number:03}" + "x" * 100_000)
        assert len(log.written.pop()) == MAX_TEXT_CHARS
    log.say("%s and %s", "y" * MAX_TEXT_CHARS, "z")
    assert log.written == ["y" * (MAX_TEXT_CHARS - 1) + "…"]
