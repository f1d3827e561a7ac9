"""The log buffer keeps the latest entries within its limits, and selects entries by level, part, and text."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import orjson
import pytest

from appliance.log_buffer import MAX_LOG_BUFFER_BYTES, MAX_LOG_ENTRIES, LogBuffer, LogQuery, own_fields, value_text
from appliance.log_limit import (
    MAX_KINDS,
    MAX_LISTED,
    MAX_SAME_KIND,
    MAX_SAME_LINES,
    MAX_TEXT_CHARS,
    RepetitionLimit,
    log_warnings,
)

log = logging.getLogger("part.of.a.test")


@pytest.fixture
def buffer() -> Iterator[LogBuffer]:
    root = logging.getLogger()
    before = root.level
    root.setLevel(logging.INFO)
    with LogBuffer() as listening:
        yield listening
    root.setLevel(before)


def messages(buffer: LogBuffer, query: LogQuery = LogQuery(limit=MAX_LOG_ENTRIES)) -> list[str]:  # noqa: B008
    """Return the messages of the entries that match, newest first."""
    return [entry.message for entry in buffer.list_entries(query)]


def test_entries_are_newest_first_and_found_by_level_part_text_and_number(buffer: LogBuffer) -> None:
    log.info("the lamp %s is here", "desk", extra={"room": "Attic", "count": 3})
    log.warning("it is gone")
    logging.getLogger("other").error("broken")
    log.debug("not at this level")
    assert messages(buffer) == ["broken", "it is gone", "the lamp desk is here"]
    assert messages(buffer, LogQuery(level="warning")) == ["broken", "it is gone"]
    assert messages(buffer, LogQuery(level="error")) == ["broken"]
    assert messages(buffer, LogQuery(part="part.of.a.test")) == ["it is gone", "the lamp desk is here"]
    assert messages(buffer, LogQuery(contains="LAMP")) == messages(buffer, LogQuery(contains="room=attic"))
    assert messages(buffer, LogQuery(limit=1)) == ["broken"] and messages(buffer, LogQuery(after=2)) == ["broken"]
    [entry] = buffer.list_entries(LogQuery(contains="lamp"))
    assert (entry.level, entry.part, entry.fields) == ("info", "part.of.a.test", {"room": "Attic", "count": 3})


def test_fields_keep_their_names_and_tables(buffer: LogBuffer) -> None:
    deep: list[object] = []
    for _ in range(100):
        deep = [deep]
    fields = {"name": "lamp", "levelname": 1, "list": [1, {"\udcff": None}], "deep": deep}
    log.info("shown", extra=own_fields(fields))
    [entry] = buffer.list_entries(LogQuery(contains='list=[1, {"?": null}]'))
    assert {**entry.fields, "deep": ...} == {"name": "lamp", "levelname": 1, "list": [1, {"?": None}], "deep": ...}
    assert orjson.dumps(entry.fields)


def test_an_exception_is_in_the_entrys_fields(buffer: LogBuffer) -> None:
    try:
        raise ValueError("no good")
    except ValueError:
        log.warning("it failed", exc_info=True)
    assert buffer.list_entries(LogQuery())[0].fields == {"error": "ValueError: no good"}


def test_every_entry_can_be_sent_as_json(buffer: LogBuffer) -> None:
    extra = {"x\udcff": object(), "y": 1 << 80, "z": None, "w": float("nan")}
    buffer.handle(log.makeRecord("hub", logging.INFO, __file__, 1, "a\udcff\x00b", (), None, extra=extra))
    [entry] = buffer.list_entries(LogQuery())
    assert orjson.loads(orjson.dumps([entry.message, entry.fields]))[0] == "a?\x00b"


@pytest.mark.slow
def test_the_entries_and_bytes_are_limited(buffer: LogBuffer) -> None:
    for number in range(MAX_LOG_ENTRIES + 100):
        log.info("%s", number)
    kept = messages(buffer)
    assert len(kept) == MAX_LOG_ENTRIES and kept[0] == str(MAX_LOG_ENTRIES + 99)
    for number in range(1000):
        log.info("%s", f"{number}" + "x" * 8192)
    assert sum(map(len, messages(buffer))) <= MAX_LOG_BUFFER_BYTES


@pytest.mark.slow
def test_repeated_entries_are_counted_and_do_not_displace_rare_ones(buffer: LogBuffer) -> None:
    log.error("the one error")
    logging.getLogger("hub").info("started")
    for number in range(2 * MAX_LOG_ENTRIES):
        logging.getLogger("scripts").error("%s", f"number {number}")
        logging.getLogger("scripts").info("%s", "the same")
    assert {"the one error", "started"} <= {*messages(buffer)}
    assert messages(buffer).count("the same") <= 100


def test_after_its_context_the_buffer_receives_nothing() -> None:
    with LogBuffer() as buffer:
        log.warning("inside")
    log.warning("outside")
    assert messages(buffer) == ["inside"]


def test_values_are_shown_as_json_and_not_in_python_syntax() -> None:
    shown = [value_text(each) for each in ({"value": 2700, "unit": "kelvin"}, ["ü", None], "on", 5, True, None)]
    assert shown == ['{"value": 2700, "unit": "kelvin"}', '["ü", null]', "on", "5", "true", "null"]


class Log:
    """A log with a clock that the test sets."""

    def __init__(self) -> None:
        self.limit = RepetitionLimit()
        self.now = 1_000_000.0
        self.written: list[str] = []

    def say(
        self, template: str, *arguments: object, level: int = logging.WARNING, line: int = 1, part: str = "hub"
    ) -> None:
        """Write an entry that seems to come from this part and this place in the code."""
        record = logging.LogRecord(part, level, "file.py", line, template, arguments, None)
        record.created = self.now
        if self.limit.filter(record):
            self.written.append(record.getMessage())


def test_a_check_logs_only_the_first_of_many_warnings(caplog: pytest.LogCaptureFixture) -> None:
    log_warnings(logging.getLogger("hub"), (f"warning {number}" for number in range(12_000)), 12_000)
    assert len(caplog.messages) == MAX_LISTED + 1 and caplog.messages[0] == "warning 0"
    assert caplog.messages[-1] == f"{12_000 - MAX_LISTED} further warnings are not listed"


def test_a_repeated_line_is_written_a_few_times_and_then_once_per_minute_with_its_count() -> None:
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
            f"no room for you (and {held_back} similar lines before)"
        ]
    log.now += 120.0
    log.say("no room for %s", "you")
    log.now += 61.0
    log.written.clear()
    for _ in range(MAX_SAME_LINES):
        log.say("no room for %s", "you")
    assert log.written == ["no room for you"] * MAX_SAME_LINES, "the flood is over"


def test_lines_of_one_place_with_different_names_are_limited_too() -> None:
    log = Log()
    for number in range(1000):
        log.say("%s is refused", number)
    assert len(log.written) == MAX_SAME_KIND
    log.say("%s is refused", "another place", line=2)
    assert log.written[-1] == "another place is refused"
    log.say("%s is refused", "another part", part="scenes")
    assert log.written[-1] == "another part is refused", "though both are written at one place"
    log.now += 60.0
    log.say("%s is refused", "x")
    assert log.written[-1] == f"x is refused (and {1000 - MAX_SAME_KIND} similar lines before)"


def test_lines_of_scripts_are_limited_only_by_their_text() -> None:
    log = Log()
    for number in range(1000):
        log.say("%s", f"line {number}")
    assert len(log.written) == 1000
    log.written.clear()
    for _ in range(1000):
        log.say("%s", "the same")
    assert len(log.written) == MAX_SAME_KIND


def test_a_clock_that_is_set_back_does_not_suppress_lines_for_long() -> None:
    log = Log()
    for _ in range(100):
        log.say("again")
    log.now -= 86_400.0
    log.say("again")
    assert log.written[-1] == "again (and 80 similar lines before)"


def test_remembered_lines_are_limited() -> None:
    log = Log()
    for number in range(3 * MAX_KINDS):
        log.say("%s", f"line {number}")
    assert len(log.limit._windows) == MAX_KINDS


def test_suppressed_lines_leave_nothing_in_memory() -> None:
    log = Log()
    for number in range(3 * MAX_KINDS):
        log.say("device %s was removed", number)
    assert len(log.written) == MAX_SAME_KIND and len(log.limit._windows) == MAX_SAME_KIND + 1


def test_the_length_of_a_line_is_limited() -> None:
    log = Log()
    for number in range(100):
        log.say("%s", f"{number:03}" + "x" * 100_000)
        assert len(log.written.pop()) == MAX_TEXT_CHARS
    log.say("%s and %s", "y" * MAX_TEXT_CHARS, "z")
    assert log.written == ["y" * (MAX_TEXT_CHARS - 1) + "…"]
