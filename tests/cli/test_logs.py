"""Each log entry becomes one line in the format of its reader, whatever the entry contains."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from appliance.cli.log_output import JournalLines, JsonLines, TextLines, is_journal, start_logging
from appliance.cli.main import main
from appliance.settings import Logging
from tests.fakes.rows import each_row

FORMATTERS: list[logging.Formatter] = [TextLines(), JournalLines(), JsonLines()]
EVIL = "a\nb\r\x1b[31m\x00\u2028\u202e\udcff"
"""A text with line breaks, an escape sequence, a zero, a line separator, a direction override, and an invalid
byte."""


def entry(message: str = "is here", *arguments: Any, level: int = logging.INFO, **fields: Any) -> logging.LogRecord:
    """Return a log entry of the part `hub` with additional fields."""
    record = logging.LogRecord("hub", level, __file__, 1, message, arguments, None)
    vars(record).update(fields)
    return record


def failed(error: Exception, level: int = logging.ERROR) -> logging.LogRecord:
    """Return a log entry of a failure."""
    try:
        raise error
    except type(error):
        return logging.LogRecord("hub", level, __file__, 1, "failed", (), sys.exc_info())


class TestText:
    def test_a_line_is_time_level_part_message_and_fields(self) -> None:
        line = TextLines().format(entry("%s is at %d %%", "desk", 5, config=Path("/a/b"), count=3))
        assert re.fullmatch(
            r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} info    hub: desk is at 5 % config=/a/b count=3", line
        )

    @each_row(
        ("level", "word"),
        [
            (logging.DEBUG, "debug  "),
            (logging.INFO, "info   "),
            (logging.WARNING, "warning"),
            (logging.ERROR, "error  "),
        ],
    )
    def test_levels_are_words_of_one_width(self, level: int, word: str) -> None:
        assert f" {word} hub: is here" in TextLines().format(entry(level=level))

    def test_a_one_line_message_is_not_changed(self) -> None:
        assert TextLines().format(entry("Küche: 21 °C “warm” 灯")).endswith(" hub: Küche: 21 °C “warm” 灯")

    def test_nothing_in_an_entry_can_pass_for_another_line(self) -> None:
        line = TextLines().format(entry("%s", EVIL, room=EVIL))
        escaped = r"a\nb\r\x1b[31m\x00\u2028\u202e\udcff"
        assert line.endswith(f" hub: {escaped} room={escaped}")


class TestJournal:
    @each_row(
        ("level", "prefix"),
        [
            (logging.DEBUG, "<7>"),
            (logging.INFO, "<6>"),
            (logging.WARNING, "<4>"),
            (logging.ERROR, "<3>"),
            (logging.CRITICAL, "<2>"),
        ],
    )
    def test_the_level_is_a_prefix_and_the_time_is_omitted(self, level: int, prefix: str) -> None:
        assert JournalLines().format(entry(level=level, pid=7)) == f"{prefix}hub: is here pid=7"

    def test_nothing_in_an_entry_can_pass_for_another_line(self) -> None:
        assert JournalLines().format(entry("x\n<0>kernel: panic")) == r"<6>hub: x\n<0>kernel: panic"

    def test_the_journal_format_is_used_only_for_systemds_stream(self, tmp_path: Path) -> None:
        with (tmp_path / "journal").open("w") as stream, (tmp_path / "other").open("w") as other:
            status = os.fstat(stream.fileno())
            environment = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
            assert is_journal(stream, environment)
            assert not is_journal(other, environment)
            assert not is_journal(stream, {})
            assert not is_journal(stream, {"JOURNAL_STREAM": ""})
            assert not is_journal(stream, {"JOURNAL_STREAM": "nonsense"})
        assert not is_journal(stream, environment)


class TestJson:
    def test_an_entry_is_an_object_with_its_fields(self) -> None:
        record = entry("%s is here", "desk", config=Path("/a/b"), count=3, ready=True, none=None)
        assert json.loads(JsonLines().format(record)) == {
            "time": round(record.created, 3),
            "level": "info",
            "part": "hub",
            "message": "desk is here",
            "config": "/a/b",
            "count": 3,
            "ready": True,
            "none": None,
        }

    def test_a_field_cannot_imitate_other_fields_of_the_entry(self) -> None:
        parsed = json.loads(JsonLines().format(entry("%s", "hello", part="store", time=0)))
        assert (parsed["part"], parsed["message"]) == ("hub", "hello") and parsed["time"] > 0
        assert (parsed["part_"], parsed["time_"]) == ("store", 0)

    @pytest.mark.parametrize(
        "strange",
        [EVIL, "\ud800", 2**70, {"a": {1}}, {1: "x"}, b"\xff", object(), float("nan"), Path(os.fsdecode(b"/\xff"))],
        ids=lambda value: type(value).__name__,
    )
    def test_every_entry_becomes_a_readable_line(self, strange: Any) -> None:
        line = JsonLines().format(entry("%s", strange, field=strange))
        assert "\n" not in line
        parsed = json.loads(line)
        assert parsed["level"] == "info"
        assert "field" in parsed


@pytest.mark.parametrize("formatter", FORMATTERS, ids=lambda formatter: type(formatter).__name__)
class TestFailures:
    """How failures are formatted in the log."""

    def test_below_the_error_level_an_exception_has_no_traceback(self, formatter: logging.Formatter) -> None:
        logging.getLogger().setLevel(logging.INFO)
        line = formatter.format(failed(ValueError("no\ngood"), logging.WARNING))
        assert "ValueError: no" in line
        assert "Traceback" not in line and "\n" not in line

    @pytest.mark.parametrize(
        ("shown", "level"), [(logging.INFO, logging.ERROR), (logging.DEBUG, logging.INFO)], ids=["error", "debug"]
    )
    def test_a_traceback_is_one_line(self, formatter: logging.Formatter, shown: int, level: int) -> None:
        logging.getLogger().setLevel(shown)
        line = formatter.format(failed(ValueError("no good"), level))
        assert "Traceback" in line and "ValueError: no good" in line
        assert "\n" not in line

    def test_an_entry_with_an_empty_exception_is_written(self, formatter: logging.Formatter) -> None:
        record = entry()
        record.exc_info = (None, None, None)
        assert "is here" in formatter.format(record)


class TestStart:
    @pytest.mark.parametrize(
        ("level", "expected"),
        [
            ("debug", ["debug", "info", "warning", "error"]),
            ("info", ["info", "warning", "error"]),
            ("warning", ["warning", "error"]),
            ("error", ["error"]),
        ],
    )
    def test_the_level_filters(self, capsys: pytest.CaptureFixture[str], level: str, expected: list[str]) -> None:
        start_logging(Logging(level=level, format="json"), {})
        for each in ("debug", "info", "warning", "error"):
            getattr(logging.getLogger("adapters"), each)("hello")
        captured = capsys.readouterr()
        assert [json.loads(line)["level"] for line in captured.err.splitlines()] == expected
        assert captured.out == ""

    def test_the_format_is_text_unless_it_is_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        for format_ in ("text", "json"):
            start_logging(Logging(level="info", format=format_), {})
            logging.getLogger("hub").info("hello")
        text, as_json = capsys.readouterr().err.splitlines()
        assert text.endswith(" info    hub: hello")
        assert json.loads(as_json)["message"] == "hello"

    def test_a_second_start_does_not_log_twice(self, capsys: pytest.CaptureFixture[str]) -> None:
        for _ in range(3):
            start_logging(Logging(level="info", format="text"), {})
        logging.getLogger("hub").info("hello")
        assert capsys.readouterr().err.count("hello") == 1

    @pytest.mark.parametrize(
        "library", ["sanic", "sanic.error", "asyncio", "websockets.server", "aiohttp.access", "watchfiles.main"]
    )
    def test_libraries_log_only_warnings(self, capsys: pytest.CaptureFixture[str], library: str) -> None:
        start_logging(Logging(level="debug", format="text"), {})
        logging.getLogger(library).info("chatter")
        logging.getLogger(library).warning("trouble")
        assert re.fullmatch(r".* warning \S+: trouble\n", capsys.readouterr().err)


def test_an_unexpected_error_is_logged_once_with_its_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(_: object) -> int:
        raise ZeroDivisionError("by nothing")

    command = ModuleType("appliance.cli.check")
    command.__dict__["check"] = check
    monkeypatch.setitem(sys.modules, command.__name__, command)
    assert main(["check"]) == os.EX_SOFTWARE
    [entry] = caplog.records
    assert entry.levelno == logging.ERROR and entry.exc_info is not None and entry.exc_info[0] is ZeroDivisionError
    assert "failed unexpectedly: ZeroDivisionError: by nothing" in capsys.readouterr().err
