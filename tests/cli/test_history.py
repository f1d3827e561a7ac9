"""`lares history export`, and history in a backup: the whole history is exported and restored."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from appliance.clock import timestamp
from appliance.history.card_lines import encode_changes, encode_hours, encode_written
from appliance.history.hours import Hour
from appliance.store.disk import Disk
from appliance.store.month_files import READ_PART_BYTES, MonthFiles
from tests.cli.commands import Command
from tests.cli.homes import everything, home, members

NOON = int(datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp())
CELSIUS = {"unit": "celsius"}


def an_hour(start: int, value: float, secs: int = 3600, gain: float | None = None) -> Hour:
    """Return an hour, counted from noon."""
    return Hour(start=NOON + 3600 * start, secs=secs, low=value - 1, value=value, high=value + 1, gain=gain)


@pytest.fixture
def past(tmp_path: Path) -> Path:
    """Create a home with two months of history. One hour was written in two parts."""
    folder = home(tmp_path)
    months = MonthFiles(Disk(folder / "data"))
    for hours in ([an_hour(0, 20), an_hour(1, 21, 900)], [an_hour(1, 25, 2700), an_hour(2, 30)]):
        for month, line in encode_hours("hall", "temperature", CELSIUS, hours):
            months.append(month, [line, encode_written(NOON * 1000, 100, 1)])
    for month, line in encode_changes("hall", "motion", [(NOON * 1000, "clear"), (NOON * 1000 + 43_200_500, True)]):
        months.append(month, [line])
    for month, line in encode_hours("=plug", "energy", {"unit": "kWh"}, [an_hour(0, 5, gain=0.5)]):
        months.append(month, [line])
    months.append("2026-11", [_line(k="command", d="hall", s="room", r="attic", o="ok", m=None, c=_COMMAND)])
    months.append("2026-11", [_line(k="execution", of="scene", id="evening", o="error", ms=3, e="failed")])
    return folder


_COMMAND = {"capability": "brightness", "action": "set", "value": 5}


def _line(**fields: object) -> bytes:
    return json.dumps({**fields, "t": NOON * 1000}).encode()


def test_the_table_has_a_row_for_each_hour_and_change_sorted_by_time(past: Path, command: Command) -> None:
    code, result = command(past, "history", "export")
    assert code == 0
    rows = [*csv.reader(io.StringIO(result))]
    assert rows[0] == ["at", "kind", "device_id", "attribute", "value", "unit", "min", "max", "increase", "secs"]
    noon = "2026-11-30T12:00:00.000Z"
    assert rows[1:] == [
        [noon, "change", "hall", "motion", "clear", "", "", "", "", ""],
        [noon, "command", "hall", "brightness", "set 5 ok", "", "", "", "", ""],
        [noon, "execution", "scene:evening", "", "error", "", "", "", "", ""],
        [noon, "hour", "'=plug", "energy", "5", "kWh", "4", "6", "0.5", "3600"],
        [noon, "hour", "hall", "temperature", "20", "celsius", "19", "21", "", "3600"],
        ["2026-11-30T13:00:00.000Z", "hour", "hall", "temperature", "24.0", "celsius", "20", "26", "", "3600"],
        ["2026-11-30T14:00:00.000Z", "hour", "hall", "temperature", "30", "celsius", "29", "31", "", "3600"],
        ["2026-12-01T00:00:00.500Z", "change", "hall", "motion", "true", "", "", "", "", ""],
    ]


def test_json_lines_of_a_period(past: Path, command: Command) -> None:
    code, result = command(
        past, "history", "export", "--json", "--start", timestamp(_at(1)), "--end", "2026-12-01T00:00Z"
    )
    rows = [json.loads(line) for line in result.splitlines()]
    assert code == 0 and [(row["kind"], row["at"][11:13]) for row in rows] == [("hour", "13"), ("hour", "14")]
    code, result = command(past, "history", "export", "--json", "--start", "2026-12-01T00:00Z")
    assert [json.loads(line)["value"] for line in result.splitlines()] == [True]
    code, result = command(past, "history", "export", "--json", "--end", timestamp(_at(0)))
    kinds = {row["kind"]: row for row in map(json.loads, result.splitlines())}
    assert kinds["command"]["command"] == _COMMAND and kinds["execution"]["of"] == "scene:evening"
    assert kinds.keys() == {"hour", "change", "command", "execution"}


def test_a_long_month_is_exported_in_parts_and_sorted(tmp_path: Path, command: Command) -> None:
    """Each write contains older entries than the end of the previous write, and the second part of an hour."""
    months, count = MonthFiles(Disk(home(tmp_path) / "data")), 40
    for write in range(count):
        begin = write * 10
        hours = [an_hour(begin - 500, 5, 1800), an_hour(begin - 490, 7, 1800)]
        lines = [line for _, line in encode_hours("hall", "temperature", CELSIUS, hours)]
        for number in range(100):
            at = (NOON + 3600 * (begin - 495) + number * 360) * 1000
            lines += [line for _, line in encode_changes(f"lamp{number}", "custom.x.text", [(at, "x" * 100)] * 2)]
        months.append("2026-11", lines)
    assert months.list_months()["2026-11"] > 5 * READ_PART_BYTES
    code, result = command(tmp_path, "history", "export", "--json")
    rows = [json.loads(line) for line in result.splitlines()]
    assert code == 0 and [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    assert sum(row["kind"] == "change" for row in rows) == 200 * count
    hours_ = [(row["value"], row["secs"]) for row in rows if row["kind"] == "hour"]
    assert hours_ == [(5, 1800), *[(6, 3600)] * (count - 1), (7, 1800)]
    end = rows[len(rows) // 2]["at"]
    code, result = command(tmp_path, "history", "export", "--json", "--end", end)
    assert code == 0 and [json.loads(line) for line in result.splitlines()] == [
        row for row in rows if row["at"] <= end
    ]


@pytest.mark.parametrize("stated", [7, 10**14])
def test_a_value_can_have_a_field_with_the_name_of_the_time(tmp_path: Path, command: Command, stated: int) -> None:
    months = MonthFiles(Disk(home(tmp_path) / "data"))
    parts = {"unit": "celsius", "t": stated, "h": [[1]]}
    for month, line in encode_hours("hall", "temperature", parts, [an_hour(0, 20)]):
        months.append(month, [line])
    for month, line in encode_changes("hall", "state", [(NOON * 1000, {"t": stated, "h": [[1]]})]):
        months.append(month, [line])
    code, result = command(tmp_path, "history", "export", "--json", "--end", timestamp(_at(1)))
    kinds = {row["kind"]: row["at"] for row in map(json.loads, result.splitlines())}
    assert code == 0 and kinds == dict.fromkeys(["hour", "change"], "2026-11-30T12:00:00.000Z")


def _at(hours: int) -> datetime:
    return datetime.fromtimestamp(NOON + 3600 * hours, UTC)


def test_damaged_lines_are_omitted_and_reported(past: Path, command: Command) -> None:
    file = past / "data" / "history" / "2026-11.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"kWh"', b'"KWh"') + b"\nrubbish")
    code, result = command(past, "history", "export")
    assert code == 0 and "=plug" not in result and "2 damaged lines were skipped" in result


def test_a_period_that_ends_before_it_begins_is_an_error(past: Path, command: Command) -> None:
    code, result = command(past, "history", "export", "--start", "2026-12-02", "--end", "2026-12-01")
    assert code == 64 and result == "lares: --end is before --start\n"


@pytest.mark.parametrize("flag", ["--start", "--end"])
def test_an_invalid_time_is_wrong_usage(past: Path, command: Command, flag: str) -> None:
    code, result = command(past, "history", "export", flag, "yesterday")
    assert code == 64 and result.startswith(f"lares: {flag} must be a time, such as 2026-11-01")


def test_without_an_end_the_export_contains_entries_of_a_clock_that_was_ahead(past: Path, command: Command) -> None:
    MonthFiles(Disk(past / "data")).append(
        "9000-01",
        [
            _line(k="command", d="hall", s="room", r="attic", o="ok", m=None, c=_COMMAND).replace(
                b'"t": %d' % (NOON * 1000), b'"t": 221845392000000'
            )
        ],
    )
    code, result = command(past, "history", "export")
    assert code == 0 and "9000-01-01T00:00:00.000Z" in result


def test_a_home_without_history_has_an_empty_table(tmp_path: Path, command: Command) -> None:
    assert command(home(tmp_path), "history", "export", "--json") == (0, "")
    (tmp_path / "data").rename(tmp_path / "gone")
    code, result = command(tmp_path, "history", "export")
    assert code == 66 and "there is no data directory" in result


def test_a_backup_includes_history_and_keeps_the_replaced_one(past: Path, command: Command) -> None:
    before = everything(past / "data" / "history")
    code, result = command(past, "backup", "b.tar.gz")
    assert (code, result) == (
        0,
        "b.tar.gz: 5 state entries, 1 configuration file and 2 months of history\n",
    )
    assert {f"history/{name}" for name in before} < members(past / "b.tar.gz").keys()
    months = MonthFiles(Disk(past / "data"))
    months.remove(["2026-12"])
    months.append("2026-11", [b'{"more":1}'])
    changed = everything(past / "data" / "history")
    code, result = command(past, "restore", "b.tar.gz")
    assert code == 0 and "1 files, 2 months of history" in result
    assert everything(past / "data" / "history") == before
    [kept] = (past / "data").glob("history.before-restore-*")
    assert everything(kept) == changed and str(kept) in result
    assert not [*(past / "data").glob("*restore-part")]


def test_a_backup_without_history_keeps_the_history_of_the_box(past: Path, command: Command) -> None:
    before = everything(past / "data" / "history")
    code, result = command(past, "backup", "b.tar.gz", "--without-history")
    assert (code, result) == (0, "b.tar.gz: 5 state entries and 1 configuration file\n")
    assert not [name for name in members(past / "b.tar.gz") if name.startswith("history")]
    code, result = command(past, "restore", "b.tar.gz")
    assert code == 0 and everything(past / "data" / "history") == before
    assert not [*(past / "data").glob("history.*")]


def test_a_backup_omits_history_that_is_not_a_plain_file(past: Path, command: Command) -> None:
    file = past / "data" / "history" / "2026-10.jsonl"
    file.symlink_to("/etc/hostname")
    code, result = command(past, "backup", "b.tar.gz")
    assert code == 0 and f"warning: {file} is not in the backup: no plain file of a month" in result
    assert "history/2026-10.jsonl" not in members(past / "b.tar.gz")


def test_a_failed_restore_keeps_the_history(past: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    command(past, "backup", "b.tar.gz")
    (past / "config" / "default.toml").write_text("broken = [")
    before = everything(past)
    code, _ = command(past, "restore", "b.tar.gz")
    assert code == 78 and everything(past) == before
