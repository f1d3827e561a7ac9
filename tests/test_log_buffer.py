"""The log buffer: the latest entries, found again by level, part and text, within its bounds."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import orjson
import pytest

from appliance.log_buffer import MAX_LOG_BUFFER_BYTES, MAX_LOG_ENTRIES, LogBuffer, LogQuery, own_fields, value_text

log = logging.getLogger("part.of.a.test")


@pytest.fixture
def buffer() -> Iterator[LogBuffer]:
    """A buffer that listens at level info."""
    logging.getLogger().setLevel(logging.INFO)
    with LogBuffer() as listening:
        yield listening


def messages(buffer: LogBuffer, query: LogQuery = LogQuery(limit=MAX_LOG_ENTRIES)) -> list[str]:  # noqa: B008
    """The messages of the entries that match, newest first."""
    return [entry.message for entry in buffer.list_entries(query)]


def test_entries_come_newest_first_and_are_found_by_level_part_text_and_number(buffer: LogBuffer) -> None:
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


def test_fields_keep_their_names_and_tables_stay_tables(buffer: LogBuffer) -> None:
    deep: list[object] = []
    for _ in range(100):
        deep = [deep]
    fields = {"name": "lamp", "levelname": 1, "list": [1, {"\udcff": None}], "deep": deep}
    log.info("shown", extra=own_fields(fields))
    [entry] = buffer.list_entries(LogQuery(contains='list=[1, {"?": null}]'))
    assert {**entry.fields, "deep": ...} == {"name": "lamp", "levelname": 1, "list": [1, {"?": None}], "deep": ...}
    assert orjson.dumps(entry.fields)


def test_an_exception_is_named_in_the_entry_s_fields(buffer: LogBuffer) -> None:
    try:
        raise ValueError("no good")
    except ValueError:
        log.warning("it failed", exc_info=True)
    assert buffer.list_entries(LogQuery())[0].fields == {"error": "ValueError: no good"}


def test_whatever_is_logged_it_can_be_sent_as_json(buffer: LogBuffer) -> None:
    extra = {"x\udcff": object(), "y": 1 << 80, "z": None, "w": float("nan")}
    buffer.handle(log.makeRecord("hub", logging.INFO, __file__, 1, "a\udcff\x00b", (), None, extra=extra))
    [entry] = buffer.list_entries(LogQuery())
    assert orjson.loads(orjson.dumps([entry.message, entry.fields]))[0] == "a?\x00b"


def test_only_so_many_entries_and_bytes_are_kept(buffer: LogBuffer) -> None:
    for number in range(MAX_LOG_ENTRIES + 100):
        log.info("%s", number)
    kept = messages(buffer)
    assert len(kept) == MAX_LOG_ENTRIES and kept[0] == str(MAX_LOG_ENTRIES + 99)
    for number in range(1000):
        log.info("%s", f"{number}" + "x" * 8192)
    assert sum(map(len, messages(buffer))) <= MAX_LOG_BUFFER_BYTES


def test_no_chatter_pushes_out_what_is_rare_and_what_repeats_is_counted(buffer: LogBuffer) -> None:
    log.error("the one error")
    logging.getLogger("hub").info("started")
    for number in range(2 * MAX_LOG_ENTRIES):
        logging.getLogger("scripts").error("%s", f"number {number}")
        logging.getLogger("scripts").info("%s", "the same")
    assert {"the one error", "started"} <= {*messages(buffer)}
    assert messages(buffer).count("the same") <= 100


def test_after_its_context_it_hears_nothing() -> None:
    with LogBuffer() as buffer:
        log.warning("inside")
    log.warning("outside")
    assert messages(buffer) == ["inside"]


def test_values_are_shown_to_people_as_json_and_not_as_python_writes_them() -> None:
    shown = [value_text(each) for each in ({"value": 2700, "unit": "kelvin"}, ["ü", None], "on", 5)]
    assert shown == ['{"value": 2700, "unit": "kelvin"}', '["ü", null]', "on", "5"]
