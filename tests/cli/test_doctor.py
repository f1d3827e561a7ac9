"""`lares doctor` prints one line per subject. If the clock is wrong, the command recommends `lares clock trust`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from appliance.store.disk import Disk
from appliance.store.lock import DirectoryLock, holder_of
from appliance.store.month_files import MonthFiles
from tests.cli.commands import LOOPBACK, WITH_KEY, Command, box, ended, environment, lares, until
from tests.cli.homes import CARD, HOME, home

pytestmark = pytest.mark.slow


AS_NOBODY = """
import contextlib, io, os, sys
from appliance.cli.main import main
with contextlib.redirect_stdout(io.StringIO()):
    main(["doctor"])  # imports all that nobody may not read
os.setuid(65534)
sys.exit(main(["doctor"]))
"""


def run_as_nobody(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `lares` with these arguments in the folder, as a user with few permissions."""
    program = AS_NOBODY.replace('["doctor"]', json.dumps(arguments))
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment(), capture_output=True, text=True
    )


class Findings:
    """The findings of `lares doctor` by subject. A finding has a verdict and a message."""

    def __init__(self, result: tuple[int, str]) -> None:
        self.code, text = result
        lines = [re.fullmatch(r"(ok|care) +(\S+(?: \S+)?)  +(.*)", line) for line in text.splitlines()]
        assert all(lines), text
        self.all = [(each[1], each[2], each[3]) for each in lines if each is not None]

    def of(self, what: str) -> list[tuple[str, str]]:
        return [(how, sentence) for how, each, sentence in self.all if each == what]

    @property
    def cares(self) -> list[str]:
        return [what for how, what, _ in self.all if how == "care"]


def test_errors_of_lua_files_need_care_as_check_reports_them(tmp_path: Path, command: Command) -> None:
    folder = home(tmp_path)
    (folder / "config" / "scenes").mkdir(exist_ok=True)
    (folder / "config" / "scenes" / "bad.lua").write_text("return {\n  id = 'bad',\n")
    found = Findings(command(folder, "doctor"))
    assert found.code == 1 and found.cares == ["configuration"]
    [(_, sentence)] = found.of("configuration")
    assert sentence.startswith("config/scenes/bad.lua:3: ")


def test_a_healthy_box_is_0_with_every_line_ok(tmp_path: Path, command: Command) -> None:
    found = Findings(command(home(tmp_path), "doctor"))
    assert found.code == 0 and not found.cares
    assert [what for _, what, _ in found.all] == [
        "configuration",
        "data directory",
        "free space",
        "hub",
        "store",
        "keys",
        "written",
        "clock",
        "history",
        "Lua worker",
        "platform",
    ]
    assert found.of("configuration") == [("ok", f"{tmp_path}/config/default.toml")]
    assert found.of("data directory") == [("ok", f"{tmp_path}/data (mode 0700)")]
    assert found.of("hub") == [("ok", "no hub is running")]
    assert found.of("store") == [("ok", f"generation 1, record 0, {len(HOME)} entries")]
    assert found.of("keys") == [("ok", "0 API keys, no generated master key")]
    assert found.of("written") == [("ok", "no writes recorded yet")]
    assert f"Python {sys.version.split()[0]}" in found.of("platform")[0][1]


def test_damaged_lines_of_history_need_care(tmp_path: Path, command: Command) -> None:
    files = MonthFiles(Disk(home(tmp_path) / "data"))
    files.append("2026-11", [b'{"a":1}', b'{"a":2}'])
    assert Findings(command(tmp_path, "doctor")).of("history") == [("ok", "1 month stored, 0.0 MB")]
    file = tmp_path / "data" / "history" / "2026-11.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"a":2', b'"a":3'))
    sentence = "1 month stored, 0.0 MB, 1 damaged lines skipped"
    assert Findings(command(tmp_path, "doctor")).of("history") == [("care", sentence)]


def test_it_writes_nothing(tmp_path: Path, command: Command) -> None:
    command(home(tmp_path), "doctor")
    assert not (tmp_path / "data" / "lock").exists()
    empty = tmp_path / "empty"
    empty.mkdir()
    command(empty, "doctor")
    assert not list(empty.iterdir())


def test_an_empty_folder_is_1_with_the_command_to_create_a_home(tmp_path: Path, command: Command) -> None:
    found = Findings(command(tmp_path, "doctor"))
    assert found.code == 1
    assert found.of("configuration") == [
        ("care", f"there is no configuration file {tmp_path}/config/default.toml; `lares run` writes it")
    ]
    assert found.of("data directory") == [("care", f"{tmp_path}/data does not exist; `lares run` creates it")]
    assert found.cares == ["configuration", "data directory"]


def test_every_error_is_a_line(tmp_path: Path, command: Command) -> None:
    home(tmp_path, text="[api]\nx = 1\ny = 2\n")
    found = Findings(command(tmp_path, "doctor"))
    file = tmp_path / "config" / "default.toml"
    assert found.code == 1
    assert [how for how, _ in found.of("configuration")] == ["care", "care"]
    assert [sentence.partition(" is ")[0] for _, sentence in found.of("configuration")] == [
        f"{file}:2: api.x",
        f"{file}:3: api.y",
    ]


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701])
def test_a_data_directory_open_to_others_needs_care(tmp_path: Path, command: Command, mode: int) -> None:
    (home(tmp_path) / "data").chmod(mode)
    found = Findings(command(tmp_path, "doctor"))
    assert found.code == 1
    assert found.of("data directory") == [
        ("care", f"{tmp_path}/data (mode {mode:04o}) is accessible to other users; run `chmod 700 {tmp_path}/data`")
    ]


def test_a_read_only_card_is_reported(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    home(tmp_path)
    found = os.statvfs(tmp_path)
    flags = found.f_flag | os.ST_RDONLY
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((*found[:8], flags, *found[9:])))
    [(how, sentence)] = Findings(command(tmp_path, "doctor")).of("data directory")
    assert how == "care" and sentence.endswith("is read-only; check the SD card or disk, then restart the machine")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_a_user_without_access_to_the_data_gets_an_error(open_folder: Path, mode: int) -> None:
    tmp_path = open_folder
    (home(tmp_path) / "data").chmod(mode)
    result = run_as_nobody(tmp_path, "doctor")
    assert result.stderr == ""
    found = Findings((result.returncode, result.stdout))
    assert found.code == 1
    assert found.of("data directory") == [
        ("care", f"{tmp_path}/data (mode {mode:04o}) belongs to user 0; run `sudo lares doctor`")
    ]
    if mode == 0o755:
        assert re.fullmatch(r"permission denied: \S+; use sudo", found.of("store")[0][1])
    else:
        assert "hub" not in result.stdout, "whether one runs cannot be seen"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_user_without_access_to_the_folder_gets_an_error(open_folder: Path) -> None:
    home(open_folder)
    open_folder.chmod(0o700)
    result = run_as_nobody(open_folder, "doctor")
    assert result.returncode == os.EX_NOPERM
    assert re.fullmatch(r"lares: permission denied: \S+; use sudo\n", result.stderr)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("arguments", [["check"], ["simulate"], ["history", "export"], ["devices"], ["why", "x"]])
def test_other_commands_fail_without_access_to_the_data(open_folder: Path, arguments: list[str]) -> None:
    (home(open_folder) / "data").chmod(0o700)
    result = run_as_nobody(open_folder, *arguments)
    assert (result.returncode, result.stdout) == (os.EX_NOPERM, ""), result
    assert re.fullmatch(r"lares: permission denied: \S+; use sudo", result.stderr.splitlines()[-1])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_the_export_names_history_without_access(open_folder: Path) -> None:
    data = home(open_folder) / "data"
    folder = data / "history"
    folder.mkdir(mode=0o700)
    for path in (data, *data.iterdir()):
        if path != folder:
            os.chown(path, 65534, 65534)
    result = run_as_nobody(open_folder, "history", "export")
    remedy = f"run `sudo chown nobody {folder}`, then `sudo chmod u+rwX {folder}`"
    assert result.returncode == os.EX_NOPERM
    assert result.stderr.splitlines()[-1] == f"lares: permission denied: {folder}; {remedy}"


def test_an_interrupted_write_is_reported_and_harmless(tmp_path: Path, command: Command) -> None:
    journal = next((home(tmp_path) / "data").glob("journal.*"))
    journal.write_bytes(journal.read_bytes().rstrip(b"\0") + b'{"seq":1,"len')
    found = Findings(command(tmp_path, "doctor"))
    assert found.code == 0
    assert found.of("store")[0] == (
        "ok",
        "journal.000001.json: 13 bytes of an interrupted write are ignored",
    )


def test_a_damaged_journal_needs_care(tmp_path: Path, command: Command) -> None:
    next((home(tmp_path) / "data").glob("journal.*")).write_bytes(b"\0" * 100)
    found = Findings(command(tmp_path, "doctor"))
    assert found.code == 1 and found.cares == ["store"]
    assert "journal.000001.json is damaged in its first line" in found.of("store")[0][1]
    assert found.of("store")[1] == ("ok", f"generation 1, record 0, {len(HOME)} entries")


def test_an_unreadable_store_needs_care_and_has_a_remedy(tmp_path: Path, command: Command) -> None:
    next((home(tmp_path) / "data").glob("snapshot.*")).write_bytes(b"nonsense")
    found = Findings(command(tmp_path, "doctor"))
    assert found.code == 1
    [(how, sentence)] = found.of("store")
    assert how == "care" and "Restore a backup, or to start empty, move" in sentence
    assert found.of("written") == []


def test_a_running_hub_is_reported_and_not_an_error(tmp_path: Path) -> None:
    box(tmp_path)
    with lares(tmp_path, "run", variables=WITH_KEY) as running:
        running.url()
        result = ended(tmp_path, "doctor")
        found = Findings((result.code, result.out))
        card = json.loads(ended(tmp_path, "status", "--json").out)["card"]
        running.stop()
    assert found.of("written")[0][1].endswith(f" syncs since {card['since']}")
    assert found.of("hub") == [("ok", f"process {running.process.pid} is running")]
    assert result.err == "" and found.code == 0


def test_an_adapter_that_is_degraded_needs_care(tmp_path: Path) -> None:
    box(tmp_path, LOOPBACK + '[adapters.elgato_lights]\nenabled = true\nbase_url = "http://127.0.0.1:9"\n')
    with lares(tmp_path, "run", variables=WITH_KEY) as running:
        running.url()
        found = until(lambda: _cares_for_adapter(tmp_path), "the adapter is degraded")
        running.stop()
    assert found.code == 1
    [(how, sentence)] = found.of("adapter")
    assert how == "care" and sentence.startswith("elgato_lights: ")


def _cares_for_adapter(folder: Path) -> Findings | None:
    result = ended(folder, "doctor")
    found = Findings((result.code, result.out))
    return found if found.of("adapter") else None


def test_doctor_holds_no_lock_that_a_starting_hub_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home(tmp_path) / "data"
    lock = DirectoryLock(folder)
    taken: list[int] = []
    monkeypatch.setattr("fcntl.flock", lambda *_: taken.append(1))
    assert holder_of(folder) == str(os.getpid()) and not taken
    monkeypatch.undo()
    lock.release()
    assert holder_of(folder) is None
    brief = DirectoryLock(folder, is_brief=True)
    assert holder_of(folder) is None, "a command is no hub"
    brief.release()


def test_the_written_bytes_are_shown(tmp_path: Path, command: Command) -> None:
    home(tmp_path, {"counter/card": {**CARD, "bytes_written": 7_340_000, "syncs": 2081}})
    found = Findings(command(tmp_path, "doctor"))
    assert found.of("written") == [("ok", "7.3 MB in 2081 syncs since 2026-01-01T00:00:00.000Z")]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_who_is_not_the_hubs_gets_no_commands_for_the_own_group(open_folder: Path) -> None:
    home(open_folder)
    for path in (open_folder / "config", *(open_folder / "config").rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    file = open_folder / "config" / "automations" / "secret.lua"
    file.parent.mkdir(mode=0o755, exist_ok=True)
    file.write_text("return {}")
    file.chmod(0o600)
    result = run_as_nobody(open_folder, "doctor")
    found = Findings((result.returncode, result.stdout))
    assert ("care", f"{file}: cannot be read by user nobody, and the hub's user is root; use sudo") in found.of(
        "configuration"
    )
    assert "chgrp" not in result.stdout


def test_little_free_space_needs_care(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 20))
    found = Findings(command(home(tmp_path), "doctor"))
    assert found.code == 1 and found.cares == ["free space"]
    assert "needs" in found.of("free space")[0][1]


def test_a_write_dated_2036_needs_care_until_the_clock_is_trusted(tmp_path: Path, command: Command) -> None:
    key = {"label": "x", "role": "read", "hash": "h", "created_at": "2037-01-01T00:00:00.000Z"}
    home(tmp_path, {"counter/card": {**CARD, "at": "2036-05-05T00:00:00.000Z"}, "key/key_a": key})
    found = Findings(command(tmp_path, "doctor"))
    assert found.code == 1 and found.cares == ["clock"]
    assert "the later time 2037-01-01T00:00:00.000Z is stored" in found.of("clock")[0][1]
    assert command(tmp_path, "clock", "trust")[0] == 0
    found = Findings(command(tmp_path, "doctor"))
    assert found.code == 0 and not found.cares
