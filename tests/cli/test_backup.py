"""`lares backup` and `lares restore`: a restore brings back the complete backup, and a failure changes nothing."""

from __future__ import annotations

import errno
import gzip
import io
import itertools
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from appliance.api.keyring import MAX_KEYS
from appliance.automations.timers import MAX_TIMERS
from appliance.automations.variables import MAX_VARIABLES
from appliance.cli import archive
from appliance.cli.backup import MAX_SHOWN_RECORDS
from appliance.cli.config_swap import MARKER
from appliance.cli.configured_master_key import KEY_OMITTED, key_of, with_key, without_key
from appliance.cli.record_checks import MAX_RECORDS, MAX_VALUES
from appliance.errors import ConfigFailed, StartFailed
from appliance.home.layout import MAX_GROUPS, MAX_MEMBERS, MAX_ROOMS
from appliance.store.file_format import STORE_FORMAT
from appliance.store.restore import HISTORY_STAGE, read_document
from tests.cli.commands import LOOPBACK, ROOT, WITH_KEY, Command, box, ended, environment, lares
from tests.cli.homes import CARD, HOME, PAGE, ask, entries, everything, home, members, pack, stored_values

pytestmark = pytest.mark.slow

SECRET = "the-key-of-this-very-box"


@pytest.mark.parametrize("now", [-1.0, 2**32, 2**40])
def test_a_backup_does_not_depend_on_the_clock(now: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: now)
    made = archive.Archive(values={}, files={PurePosixPath("default.toml"): b""}, main="default.toml", created_at="")
    packed = archive.pack(made)
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        assert "config/default.toml" in tar.getnames()


def test_an_error_without_an_error_number_is_named() -> None:
    month = Mock(spec=Path, open=Mock(side_effect=OSError("the card failed")))
    made = archive.Archive(values={}, files={}, main="default.toml", created_at="", months=[month])
    with pytest.raises(StartFailed, match="history cannot be read: the card failed"):
        archive.pack(made)


class TestBackup:
    def test_a_backup_has_the_whole_home_for_this_user_only(self, tmp_path: Path, command: Command) -> None:
        (home(tmp_path, {**HOME, "counter/card": CARD}) / "config" / "scenes").mkdir()
        (tmp_path / "config" / "scenes" / "dusk.lua").write_text("return {}\n")
        old = os.umask(0)
        try:
            code, result = command(tmp_path, "backup", "b.tar.gz")
        finally:
            os.umask(old)
        assert (code, result) == (0, "b.tar.gz: 5 state entries and 2 configuration files\n")
        assert stat.S_IMODE((tmp_path / "b.tar.gz").stat().st_mode) == 0o600
        found = members(tmp_path / "b.tar.gz")
        assert found.keys() == {
            archive.MANIFEST_FILE,
            archive.STATE_FILE,
            "config/default.toml",
            "config/scenes/dusk.lua",
        }
        assert json.loads(found[archive.STATE_FILE]) == HOME
        page = json.loads(found[archive.MANIFEST_FILE])
        assert (page["format"], page["store_format"]) == (1, STORE_FORMAT)
        assert found["config/scenes/dusk.lua"] == b"return {}\n"

    def test_a_backup_during_changes_is_consistent(self, tmp_path: Path) -> None:
        box(tmp_path)
        with lares(tmp_path, "run", variables=WITH_KEY) as running:
            url, stop = running.url(), threading.Event()
            answered = []

            def change() -> None:
                number = 0
                while not stop.is_set():
                    for room in ("first", "second"):
                        ask(url, "POST", "/rooms", {"id": room, "name": f"{number}"})
                    answered.append(number)
                    number += 1

            person = threading.Thread(target=change)
            person.start()
            try:
                for each in range(4):
                    before = len(answered)
                    assert ended(tmp_path, "backup", f"{each}.tgz").code == 0
                    state = json.loads(members(tmp_path / f"{each}.tgz")[archive.STATE_FILE])
                    rooms = [state.get(f"room/{room}", {"name": -1}) for room in ("first", "second")]
                    first, second = (int(room["name"]) for room in rooms)
                    assert before - 1 <= second <= first <= second + 1
            finally:
                stop.set()
                person.join()
            running.stop()
        assert stat.S_IMODE((tmp_path / "0.tgz").stat().st_mode) == 0o600

    @pytest.mark.parametrize(
        ("place", "code", "sentence"),
        [
            ("gone/b", 73, "lares: cannot write gone/b: No such file or directory\n"),
            ("data", 73, "lares: cannot write data: it is a folder; specify a file in it\n"),
            (".", 73, "lares: cannot write .: it is a folder; specify a file in it\n"),
            ("data/..", 73, "lares: cannot write data/..: it is a folder; specify a file in it\n"),
            ("config", 73, "lares: cannot write config: it is a folder; specify a file in it\n"),
            *(
                (name, 73, f"lares: {name} is in {{0}}/data, the data directory; name another folder\n")
                for name in ("data/b", "data/snapshot.000001.json", "data/lock", "data/history/b", "link/b")
            ),
            ("loop", 73, "lares: loop exists already and is not a regular file; choose another path\n"),
            ("config/b", 73, "lares: config/b is in {0}/config, which is part of the backup; name another folder\n"),
        ],
    )
    def test_an_unwritable_place_is_reported_in_a_sentence(
        self, tmp_path: Path, command: Command, place: str, code: int, sentence: str
    ) -> None:
        (home(tmp_path) / "link").symlink_to("data")
        (tmp_path / "loop").symlink_to("loop")
        before = everything(tmp_path)
        assert command(tmp_path, "backup", place) == (code, sentence.format(tmp_path))
        assert everything(tmp_path) == before

    @pytest.mark.parametrize(
        ("content", "is_replaced"),
        [
            ("backup", True),
            ("unpacked backup", True),
            ("damaged backup", True),
            (b"", True),
            (b"mine", False),
            (b"\x1f\x8bmine", False),
            (bytes(10240), False),
            ("other archive", False),
        ],
    )
    def test_a_backup_replaces_only_earlier_backups_and_empty_files(
        self, tmp_path: Path, command: Command, content: str | bytes, is_replaced: bool
    ) -> None:
        assert command(home(tmp_path), "backup", "first")[0] == 0
        first = (tmp_path / "first").read_bytes()
        if content == "other archive":
            pack(tmp_path / "other", {"photo.jpg": b"x"})
        contents = {
            "backup": first,
            "unpacked backup": gzip.decompress(first),
            "damaged backup": first[: len(first) // 2],
            "other archive": (tmp_path / "other").read_bytes() if content == "other archive" else b"",
        }
        before = contents[content] if isinstance(content, str) else content
        (tmp_path / "b").write_bytes(before)
        code, said = command(tmp_path, "backup", "b")
        assert ((tmp_path / "b").read_bytes() == before) != is_replaced or content == "backup"
        if is_replaced:
            assert code == 0 and members(tmp_path / "b").keys() == members(tmp_path / "first").keys()
        else:
            reason = "lares: b exists already and is not a backup; choose another path\n"
            assert (code, said) == (os.EX_CANTCREAT, reason)

    def test_the_running_program_is_not_overwritten(
        self, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (home(tmp_path) / "lares.pyz").write_text("the program")
        program = SimpleNamespace(__file__=f"{tmp_path}/lares.pyz/lares_file.py")
        monkeypatch.setitem(sys.modules, "lares_file", program)
        reason = "lares: lares.pyz is the running program; choose another path\n"
        assert command(tmp_path, "backup", "lares.pyz") == (os.EX_CANTCREAT, reason)
        assert (tmp_path / "lares.pyz").read_text() == "the program"

    def test_a_folder_without_a_store_is_not_backed_up(self, tmp_path: Path, command: Command) -> None:
        (home(tmp_path) / "other").mkdir()
        reason = f"lares: there is no store in {tmp_path}/other; `lares run` creates it\n"
        assert command(tmp_path, "backup", "b", "--data-dir", "other") == (os.EX_NOINPUT, reason)
        assert not (tmp_path / "b").exists()

    def test_without_a_home_it_reports_this(self, tmp_path: Path, command: Command) -> None:
        (home(tmp_path) / "data").rename(tmp_path / "elsewhere")
        code, result = command(tmp_path, "backup", "b")
        assert (code, result) == (66, f"lares: there is no data directory {tmp_path}/data; `lares run` creates it\n")

    def test_a_store_that_cannot_be_read_is_not_backed_up_as_empty(self, tmp_path: Path, command: Command) -> None:
        next((home(tmp_path) / "data").glob("snapshot.*")).write_bytes(b"\0" * 100)
        code, result = command(tmp_path, "backup", "b")
        assert code == 65 and "has no intact snapshot" in result
        assert not (tmp_path / "b").exists()

    def test_a_file_outside_a_config_folder_is_backed_up_alone(self, tmp_path: Path, command: Command) -> None:
        (home(tmp_path) / "mine.toml").write_text(LOOPBACK)
        for word in ("backup", "restore"):
            file = str(pack(tmp_path / "b", entries()))
            code, result = command(tmp_path, "--config", "mine.toml", word, file)
            assert code == 78
            assert result.endswith("; move it to a folder named config\n")

    def test_a_configuration_that_is_too_large_for_a_restore_is_refused_now(
        self, tmp_path: Path, command: Command
    ) -> None:
        (home(tmp_path) / "config" / "film").touch()
        os.truncate(tmp_path / "config" / "film", archive.MAX_ARCHIVE_BYTES)
        code, result = command(tmp_path, "backup", "b")
        assert code == 65 and "move other files out of it" in result

    def test_a_file_that_is_too_deep_for_a_restore_is_omitted_and_reported(
        self, tmp_path: Path, command: Command
    ) -> None:
        deep = home(tmp_path) / "config" / "scripts" / Path(*"d" * 20) / "x.lua"
        deep.parent.mkdir(parents=True)
        deep.write_text("return 1\n")
        code, result = command(tmp_path, "backup", "b")
        assert code == 0 and f"warning: {deep} is not in the backup: its path is too long or too deep" in result
        assert command(tmp_path, "restore", "b")[0] == 0

    @pytest.mark.parametrize(
        ("name", "sentence"),
        [
            ("config/a\nb", r"config/a\nb is not in the backup: its path contains control characters"),
            ("config/\x1b[1m.lua", r"config/\x1b[1m.lua is not in the backup: its path contains control characters"),
            ("data/history/2026-13.jsonl", "2026-13.jsonl is not in the backup: no plain file of a month"),
            ("data/history/\n.jsonl", r"history/\n.jsonl is not in the backup: no plain file of a month"),
        ],
    )
    def test_a_file_name_that_a_restore_would_refuse_is_omitted_and_reported(
        self, tmp_path: Path, command: Command, name: str, sentence: str
    ) -> None:
        (home(tmp_path) / "data" / "history").mkdir()
        (tmp_path / name).write_text("x")
        code, result = command(tmp_path, "backup", "b")
        assert code == 0 and sentence in result
        assert command(tmp_path, "restore", "b")[0] == 0

    def test_a_remaining_copy_of_the_key_and_omitted_lua_are_reported(self, tmp_path: Path, command: Command) -> None:
        home(tmp_path, text=f'[auth]\nmaster_key = "{SECRET}"\n[scripts]\ndirectory = "lua"\n')
        shutil.copy(tmp_path / "config" / "default.toml", tmp_path / "config" / "old.toml")
        code, result = command(tmp_path, "backup", "b")
        assert code == 0
        assert f"warning: {tmp_path}/config/old.toml contains a copy of the master key" in result
        assert (
            f"warning: the backup omits {tmp_path}/lua, the folder of scripts, "
            f"because it is outside {tmp_path}/config" in result
        )
        assert "default.toml holds" not in result


WAYS = {
    "section": f'[api]\nmax_body_bytes = 4096\n[auth]\nmaster_key = "{SECRET}"\n[logging]\n',
    "comment": f"[auth] # who may\n  'master_key'='{SECRET}' # mine\n",
    "dotted": f'auth.master_key = "{SECRET}"\n[api]\nmax_body_bytes = 4096\n',
    "quoted": f'"auth"."master_key" = "{SECRET}"\n',
    "inline": f'auth = {{ master_key = "{SECRET}" }}\n[api]\nmax_body_bytes = 4096\n',
    "windows": f'[auth]\r\nmaster_key = "{SECRET}"\r\n',
    "marked": f'\ufeff[auth]\nmaster_key = "{SECRET}"\n',
}
NO_KEY = {
    "none": "[api]\nmax_body_bytes = 4096\n",
    "empty": "",
    "bare": "[api]\nmax_body_bytes = 4096\n[ auth ]\n",
    "windows": "[auth]\r\n[api]\r\n",
}


class TestMasterKey:
    """The master key is never in an archive, however the configuration is written."""

    @pytest.mark.parametrize("text", WAYS.values(), ids=WAYS)
    def test_the_master_key_is_in_no_backup(self, tmp_path: Path, command: Command, text: str) -> None:
        home(tmp_path, text=text)
        assert command(tmp_path, "backup", "b")[0] == 0
        assert SECRET.encode() not in b"".join(members(tmp_path / "b").values())

    @pytest.mark.parametrize(
        ("there", "here"),
        list(zip([*WAYS.values(), *NO_KEY.values()], itertools.cycle(WAYS.values()), strict=False)),
        ids=[*WAYS, *map("no-{}".format, NO_KEY)],
    )
    def test_the_boxs_master_key_is_kept(self, tmp_path: Path, command: Command, there: str, here: str) -> None:
        (tmp_path / "other").mkdir()
        home(tmp_path / "other", text=there.replace(SECRET, "the-key-of-the-other-box"))
        home(tmp_path, text=here)
        assert command(tmp_path / "other", "backup", "../b")[0] == 0
        assert command(tmp_path, "restore", "b")[0] == 0
        restored = (tmp_path / "config" / "default.toml").read_text()
        assert key_of(restored, "") == SECRET
        assert ("4096" in restored) == ("4096" in there)
        assert command(tmp_path, "check")[0] == 0

    def test_a_box_without_a_master_key_gets_no_key(self, tmp_path: Path, command: Command) -> None:
        text = f'[auth]\nmaster_key = "{SECRET}"\n'
        pack(tmp_path / "b", {**entries(), "config/default.toml": text.encode()})
        assert command(home(tmp_path), "restore", "b")[0] == 0
        assert (tmp_path / "config" / "default.toml").read_text() == f"[auth]\n{KEY_OMITTED}\n"

    @pytest.mark.parametrize(
        "text",
        [
            f'[auth]\nmaster_key = """\n{SECRET}"""\n',
            f'auth = {{ master_key = "{SECRET}", more = 1 }}\n',
        ],
    )
    def test_a_key_that_cannot_be_removed_prevents_a_backup(
        self, tmp_path: Path, command: Command, text: str
    ) -> None:
        home(tmp_path, text=text)
        code, result = command(tmp_path, "backup", "b")
        assert code == 78
        assert re.search(
            r"default\.toml:\d: the backup cannot omit auth\.master_key; write the key on a separate line", result
        )
        assert SECRET not in result and not (tmp_path / "b").exists()

    def test_a_text_without_a_place_for_the_key_is_an_error(self) -> None:
        with pytest.raises(ConfigFailed, match=r"x: has no place for auth\.master_key"):
            with_key("auth = { more = 1 }\n", SECRET, "x")

    def test_any_key_is_restored_unchanged(self) -> None:
        for key in ('quote"back\\slash', "#hash='x'", "x" * 500):
            assert key_of(with_key("[api]\n", key, ""), "") == key
            assert without_key(with_key("[auth]\n", key, ""), "") == f"[auth]\n{KEY_OMITTED}\n"

    def test_a_restore_never_replaces_a_broken_configuration(self, tmp_path: Path, command: Command) -> None:
        pack(tmp_path / "b", entries())
        before = everything(home(tmp_path, text="[auth\n"))
        code, result = command(tmp_path, "restore", "b")
        assert code == 78
        assert "default.toml:1: is not valid TOML" in result and "correct or move the file" in result
        assert everything(tmp_path) == before


class TestRestore:
    def test_a_hub_has_the_home_after_a_restore(self, tmp_path: Path) -> None:
        box(tmp_path)
        with lares(tmp_path, "run", variables=WITH_KEY) as running:
            url = running.url()
            for number in range(3):
                ask(url, "POST", "/rooms", {"id": f"r{number}", "name": f"Room {number}"})
            ask(url, "POST", "/groups", {"id": "g", "name": "Group", "members": []})
            before = [ask(url, "GET", path) for path in ("/rooms", "/groups", "/devices")]
            assert ended(tmp_path, "backup", "b").code == 0
            ask(url, "DELETE", "/rooms/r1")
            ask(url, "DELETE", "/groups/g")
            running.stop()
        result = ended(tmp_path, "restore", "b")
        assert result.code == 0
        with lares(tmp_path, "run", variables=WITH_KEY) as running:
            url = running.url()
            assert [ask(url, "GET", path) for path in ("/rooms", "/groups", "/devices")] == before
            running.stop()

    def test_a_configuration_that_is_not_utf_8_is_named_as_part_of_the_backup(
        self, tmp_path: Path, command: Command
    ) -> None:
        pack(tmp_path / "b", {**entries(), "config/default.toml": b"\xff\xfe\x00"})
        before = everything(home(tmp_path))
        assert command(tmp_path, "restore", "b") == (
            65,
            "lares: default.toml in the backup is not UTF-8 text; nothing was restored\n",
        )
        assert everything(tmp_path) == before

    def test_replaced_files_are_kept_and_listed(self, tmp_path: Path, command: Command) -> None:
        home(tmp_path, {"room/old": {"name": "Old"}}, "[logging]\nlevel = 'debug'\n")
        (tmp_path / "config" / "own.lua").write_text("-- mine")
        pack(tmp_path / "b", entries())
        code, result = command(tmp_path, "restore", "b")
        kept = re.findall(r"the replaced files are kept as (.+)", result)
        assert code == 0
        assert [re.sub(r"\d{8}T\d{6}Z$", "T", Path(each).name) for each in kept] == [
            "config.before-restore-T",
            "journal.000001.json.before-restore-T",
            "snapshot.000001.json.before-restore-T",
        ]
        assert (Path(kept[0]) / "own.lua").read_text() == "-- mine"
        assert not (tmp_path / "config" / "own.lua").exists()
        back = tmp_path / "back"
        back.mkdir()
        for each in kept[1:]:
            shutil.copy(each, back / Path(each).name.partition(".before")[0])
        assert read_document(back).values == {"room/old": b'{"name":"Old"}'}
        assert stored_values(tmp_path) == HOME

    def test_a_backup_includes_earlier_versions_of_files(self, tmp_path: Path, command: Command) -> None:
        name = "config%2Fscenes%2Fevening.lua.1.1767225600000"
        versions = home(tmp_path / "one") / "data" / "versions"
        versions.mkdir()
        (versions / name).write_text("return {}")
        (versions / f".{name}.part").write_text("half")
        assert command(tmp_path / "one", "backup", "b")[0] == 0
        home(tmp_path / "two")
        assert command(tmp_path / "two", "restore", "../one/b")[0] == 0
        restored = tmp_path / "two" / "data" / "versions"
        assert {file.name: file.read_text() for file in restored.iterdir()} == {name: "return {}"}

    def test_a_restore_to_an_empty_folder_works(self, tmp_path: Path, command: Command) -> None:
        pack(tmp_path / "b", entries())
        code, result = command(tmp_path, "restore", "b")
        assert (code, result) == (0, "restored the backup of 2026-01-01: 5 entries, 1 files\n")
        assert stored_values(tmp_path) == HOME
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700

    @pytest.mark.parametrize("damage", [b"", b"\0" * 4096, b"nonsense\n", b'{"format": 99}\n'])
    def test_a_damaged_store_is_replaced(self, tmp_path: Path, command: Command, damage: bytes) -> None:
        for file in (home(tmp_path) / "data").glob("*.json"):
            file.write_bytes(damage)
        pack(tmp_path / "b", entries())
        code, result = command(tmp_path, "restore", "b")
        assert code == 0 and result.count(".json.before-restore-") == 2
        assert stored_values(tmp_path) == HOME

    def test_the_figures_of_the_card_are_not_restored(self, tmp_path: Path, command: Command) -> None:
        home(tmp_path, {"counter/card": CARD})
        pack(tmp_path / "b", entries(state={**HOME, "counter/card": {**CARD, "syncs": 1000}}))
        assert command(tmp_path, "restore", "b")[0] == 0
        assert stored_values(tmp_path) == {**HOME, "counter/card": CARD}

    def test_a_backup_without_configuration_keeps_the_boxs_own(self, tmp_path: Path, command: Command) -> None:
        (home(tmp_path / "bare", {}) / "config" / "default.toml").unlink()
        assert command(tmp_path / "bare", "backup", "../b")[0] == 0
        home(tmp_path, text=WAYS["section"])
        assert command(tmp_path, "restore", "b")[0] == 0
        assert (tmp_path / "config" / "default.toml").read_text() == WAYS["section"]
        assert stored_values(tmp_path) == {}

    @pytest.mark.parametrize("has_folder", [False, True])
    def test_a_named_configuration_can_be_missing(
        self, tmp_path: Path, command: Command, *, has_folder: bool
    ) -> None:
        pack(tmp_path / "b", entries())
        if has_folder:
            (tmp_path / "new" / "config").mkdir(parents=True)
        code, result = command(tmp_path, "--config", "new/config/default.toml", "restore", "b")
        assert code == 0, result
        assert (tmp_path / "new" / "config" / "default.toml").read_text() == LOOPBACK
        (tmp_path / "new" / "config" / "default.toml").unlink()
        (tmp_path / "new" / "config" / "default.toml").mkdir()
        code, result = command(tmp_path, "--config", "new/config/default.toml", "restore", "b")
        assert code == 78 and "default.toml is not a regular file" in result

    def test_the_configuration_gets_the_name_that_it_has_here(self, tmp_path: Path, command: Command) -> None:
        home(tmp_path, text=WAYS["section"])
        (tmp_path / "config" / "default.toml").rename(tmp_path / "config" / "home.toml")
        pack(tmp_path / "b", entries())
        assert command(tmp_path, "--config", "config/home.toml", "restore", "b")[0] == 0
        assert [each.name for each in (tmp_path / "config").iterdir()] == ["home.toml"]
        assert key_of((tmp_path / "config" / "home.toml").read_text(), "") == SECRET

    @pytest.mark.parametrize("folder", [0o750, 0o755])
    def test_files_keep_the_permissions_of_replaced_ones(self, tmp_path: Path, command: Command, folder: int) -> None:
        (home(tmp_path) / "config").chmod(folder)
        (tmp_path / "config" / "default.toml").chmod(0o640)
        pack(tmp_path / "b", {**entries(), "config/lua/new.lua": b""})
        assert command(tmp_path, "restore", "b")[0] == 0
        modes = {each.name: oct(each.stat().st_mode & 0o777) for each in (tmp_path / "config").rglob("*")}
        assert modes == {"default.toml": "0o640", "lua": oct(folder), "new.lua": "0o640"}

    def test_while_a_hub_runs_it_is_refused_and_the_hub_named(self, tmp_path: Path) -> None:
        box(tmp_path)
        pack(tmp_path / "b", entries())
        with lares(tmp_path, "run", variables=WITH_KEY) as running:
            running.url()
            before = everything(tmp_path / "config")
            result = ended(tmp_path, "restore", "b")
            assert result.code == 75
            assert result.err == (
                f"lares: the data directory {tmp_path}/data is in use by another hub, process {running.process.pid}\n"
            )
            assert everything(tmp_path / "config") == before
            running.stop()


def _link(kind: bytes, name: str = "config/x", **more: Any) -> Callable[[tarfile.TarFile], None]:
    def add(tar: tarfile.TarFile) -> None:
        entry = tarfile.TarInfo(name)
        entry.type = kind
        for field, value in more.items():
            setattr(entry, field, value)
        tar.addfile(entry)

    return add


def _chain_of_headers() -> bytes:
    """Return headers, each of which applies to the next header."""
    entry = tarfile.TarInfo("x")
    entry.type = tarfile.XHDTYPE
    return entry.tobuf() * 5000


HOSTILE: dict[str, Callable[[Path], Path]] = {
    "a chain of headers": lambda file: _raw(file, _chain_of_headers()),
    "empty": lambda file: _raw(file, b""),
    "junk": lambda file: _raw(file, os.urandom(5000)),
    "text": lambda file: _raw(file, b"hello\n" * 500),
    "an empty tar": lambda file: pack(file, {}),
    "no page": lambda file: pack(file, {archive.STATE_FILE: b"{}"}),
    "no state": lambda file: pack(file, {archive.MANIFEST_FILE: json.dumps(PAGE).encode()}),
    "another kind": lambda file: pack(file, entries({**PAGE, "kind": "else"})),
    "format zero": lambda file: pack(file, entries({**PAGE, "format": 0})),
    "format as text": lambda file: pack(file, entries({**PAGE, "format": "1"})),
    "no format": lambda file: pack(file, entries({"kind": "lares-backup"})),
    "store format zero": lambda file: pack(file, entries({**PAGE, "store_format": 0})),
    "store format as text": lambda file: pack(file, entries({**PAGE, "store_format": "1"})),
    "main is no name": lambda file: pack(file, entries({**PAGE, "main": ["x"]})),
    "newer without version": lambda file: pack(file, entries({"kind": "lares-backup", "format": 2})),
    "page is a list": lambda file: pack(file, {**entries(), archive.MANIFEST_FILE: b"[]"}),
    "page is not JSON": lambda file: pack(file, {**entries(), archive.MANIFEST_FILE: b"{"}),
    "page is deep": lambda file: pack(file, {**entries(), archive.MANIFEST_FILE: b"[" * 100_000}),
    "file and folder": lambda file: pack(file, {**entries(), "config/a": b"", "config/a/b": b""}),
    "larger than all memory": lambda file: _sparse(file, 4 << 40),
}


TOO_DEEP = "contains a file whose path is too long or too deep"
CONTROL = "contains a file whose path contains control characters"
OUTSIDE = "contains a path outside its folder"
TOO_LARGE = "has more than 64 MiB without its history (the largest file is"
TOO_MANY = "contains more than 10,000 files and folders"
FOREIGN = "contains a file that is not part of a backup"
SPECIAL = "contains a link or a special file (config/x)"
RECORD = "contains an invalid record"
STATE = "contains an invalid state.json; nothing"
LAMP, LAMP_STATE = "device/lamp:light:0", "state/lamp:light:0"
ESCAPES = "a\x1b]0;PWN\x07"
KEY_RECORD = {"label": "x", "role": "read", "hash": "x", "created_at": "2026-01-01T00:00:00.000Z"}

SHARED_ALIAS = {"alias/lamp:light:0": "lamp", "alias/door": "lamp"}
SHARED_ALIAS_SHOWN = "alias/lamp:light:0: alias 'lamp' belongs to device 'door'"

RECORDS: dict[str, tuple[dict[str, Any], str]] = {
    "a name of a room": ({"room/x": {"name": ESCAPES}}, "room/x: name must not contain control characters"),
    "a room without one": ({"room/x": {}}, "room/x: name is missing"),
    "a name of a group": ({"group/x": {"name": "", "members": []}}, "group/x: name must have 1 to 1000"),
    "a member": ({"group/x": {"name": "X", "members": ["\n"]}}, "group/x: members at index 0 must have 1"),
    "a place": ({"place/lamp": "\x1b"}, "place/lamp: room_id must not contain control characters"),
    "a name of a device": ({"name/lamp": ESCAPES}, "name/lamp: name must not contain control characters"),
    "a long name of a device": ({"name/lamp": "x" * 5_000_000}, "name/lamp: name must have 1 to 1000"),
    "an alias": ({"alias/lamp": "A b"}, "alias/lamp: alias must begin with a letter"),
    "a label of a key": ({"key/key_1": {**KEY_RECORD, "label": ESCAPES}}, "key/key_1: label must not contain"),
    "a long label": ({"key/key_1": {**KEY_RECORD, "label": "x" * 101}}, "key/key_1: label must have 1 to 100"),
    "a role": ({"key/key_1": {**KEY_RECORD, "role": "root"}}, "key/key_1: role must be"),
    "a variable's name": ({"variable/A B": {"value": 1}}, "variable/A B: the variable's name must"),
    "a variable": ({"variable/a": {"value": "x" * 20_000}}, "variable/a: variable 'a': the value has"),
    "a timer": (
        {"timer/\x07": {"started_at": 1, "due_at": 2}},
        "timer/\\x07: the timer's name must not contain control",
    ),
    "preferences": ({"preferences/key_1": {"a": "x" * 20_000}}, "preferences/key_1: preferences can have at most"),
    "a room that is a number": ({"room/x": 5}, "room/x: the value must be an object, not 5"),
    "a room that is null": ({"room/x": None}, "room/x: the value must be an object, not "),
    "a group without members": ({"group/x": {"name": "X"}}, "group/x: 'members' is missing"),
    "an unknown room": ({"place/nope:x": "gone"}, "place/nope:x: room 'gone' is unknown"),
    "a device of no kind": (
        {LAMP: {"kind": "?", "source": "", "vendor_specific": {}}},
        f"{LAMP}: Invalid enum value",
    ),
    "a device without a section": ({"device/q:q": {"kind": "Light"}}, "device/q:q: Object missing required field"),
    "a state of no time": ({LAMP_STATE: {"at": "soon", "is": {}}}, f"{LAMP_STATE}: Expected `int`"),
    "a state of the far future": ({LAMP_STATE: {"at": 1 << 60, "is": {}}}, f"{LAMP_STATE}: "),
    "a state that is a number": ({LAMP_STATE: 5}, f"{LAMP_STATE}: the value must be an object, not 5"),
    "a timer of the far future": ({"timer/t": {"started_at": 1, "due_at": 1e300}}, "timer/t: Expected `int`"),
    "a timer without a start": ({"timer/t": {"at": 1e300}}, "timer/t: Object missing required field"),
    "a timer that is a list": ({"timer/v": [1]}, "timer/v: the value must be an object, not an array"),
    "a variable that is text": ({"variable/x": "text"}, "variable/x: the value must be an object, not 'text'"),
    "last values of a variable": ({"variable/x": {"last": 5}}, "variable/x: Expected `array`, got `int`"),
    "a switch": ({"toggle/zz": "maybe"}, "toggle/zz: Expected `bool`, got `str`"),
    "an automation": ({"automation/a": {"fired": {"x": "now"}}}, "automation/a: Expected `int`, got `str`"),
    "times of changes": ({"changed/a:b": {"power": "now"}}, "changed/a:b: Expected `int`, got `str`"),
    "past names": ({"sent/a:b": {"events": 5}}, "sent/a:b: Expected `array`, got `int`"),
    "a removed device": ({"removed/a:b": {"name": 5, "at": 1}}, "removed/a:b: Expected `str`, got `int`"),
    "a secret of an adapter": ({"adapter/a/b": 5}, "adapter/a/b: the value must be text, not 5"),
    "an unknown kind": ({"zzz/x": 1}, "zzz/x: unknown kind of record"),
    "a key without a prefix": ({"x": {}}, "x: unknown kind of record"),
    "an id": ({f"room/{ESCAPES}": {"name": "X"}}, "room/a\\x1b]0;PWN\\x07: must not contain control"),
}


def _with_record(record: Mapping[str, Any]) -> Callable[[Path], Path]:
    return lambda file: pack(file, entries(state={**HOME, **record}))


def _add_folders(tar: tarfile.TarFile) -> None:
    for number in range(archive.MAX_FILES + 1):
        _link(tarfile.DIRTYPE, f"config/{number}")(tar)


def _add_huge_header(tar: tarfile.TarFile) -> None:
    """Add an extended header of 2 MiB, which `tarfile` reads whole."""
    _link(tarfile.REGTYPE, pax_headers={"comment": "x" * (2 << 20)})(tar)


REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "state is a list": (lambda file: pack(file, entries(state=[])), STATE),
    "state is a number": (lambda file: pack(file, entries(state=5)), STATE),
    "state is not JSON": (lambda file: pack(file, {**entries(), archive.STATE_FILE: b"\xff"}), STATE),
    "a value of the state is not JSON": (
        lambda file: pack(file, {**entries(), archive.STATE_FILE: b'{"variable/x": tru}'}),
        STATE,
    ),
    "deep": (lambda file: pack(file, {**entries(), f"config/{'a/' * 2000}b.lua": b""}), TOO_DEEP),
    "long": (lambda file: pack(file, {**entries(), f"config/{'x' * 300}": b""}), TOO_DEEP),
    "up and away": (
        lambda file: pack(file, {**entries(), "config/../evil": b"x"}),
        f"{OUTSIDE} (config/../evil)",
    ),
    "from the root": (lambda file: pack(file, {**entries(), "/tmp/evil": b"x"}), f"{OUTSIDE} (/tmp/evil)"),
    "a link up": (lambda file: pack(file, entries(), _link(tarfile.SYMTYPE, name="../evil")), OUTSIDE),
    "huge": (
        lambda file: pack(file, {**entries(), "config/x": bytes(archive.MAX_ARCHIVE_BYTES)}),
        f"{TOO_LARGE} config/x)",
    ),
    "huge by its own account": (lambda file: _raw(file, _lying_size(file)), f"{TOO_LARGE} config/x)"),
    "a huge history by its own account": (
        lambda file: _raw(file, _lying_size(file, "history/2026-11.jsonl")),
        "has more than 256 MiB of history (up to history/2026-11.jsonl)",
    ),
    "a small file after a huge file": (
        lambda file: pack(
            file, {**entries(), "config/x": bytes(archive.MAX_ARCHIVE_BYTES - 5000), "config/y": bytes(5000)}
        ),
        f"{TOO_LARGE} config/x)",
    ),
    "much data after its end": (
        lambda file: _raw(
            file,
            gzip.compress(
                gzip.decompress(pack(file, {**entries(), "config/x": bytes(5000)}).read_bytes())
                + bytes(archive.MAX_ARCHIVE_BYTES)
            ),
        ),
        f"{TOO_LARGE} config/x)",
    ),
    "many files": (
        lambda file: pack(file, {**entries(), **{f"config/{n}": b"" for n in range(archive.MAX_FILES)}}),
        TOO_MANY,
    ),
    "many folders": (lambda file: pack(file, {}, _add_folders), TOO_MANY),
    "an impossible month": (
        lambda file: _repack(file, more={"history/2026-13.jsonl": b"x"}),
        f"{FOREIGN} (history/2026-13.jsonl)",
    ),
    "beside": (lambda file: pack(file, {**entries(), "data/evil": b"x"}), f"{FOREIGN} (data/evil)"),
    "a page about it": (lambda file: pack(file, {**entries(), "README": b"x"}), f"{FOREIGN} (README)"),
    "the folder itself": (lambda file: pack(file, {**entries(), "config": b"x"}), f"{FOREIGN} (config)"),
    "zero in a name": (
        lambda file: pack(file, entries(), _link(tarfile.REGTYPE, pax_headers={"path": "config/a\0b"})),
        f"{CONTROL} (config/a\\x00b)",
    ),
    "an escape sequence in a name": (
        lambda file: pack(file, {**entries(), "config/\x1b[31mx": b"x"}),
        f"{CONTROL} (config/\\x1b[31mx)",
    ),
    "a line break in a name": (
        lambda file: pack(file, {**entries(), "config/scripts/x\ny.lua": b"x"}),
        f"{CONTROL} (config/scripts/x\\ny.lua)",
    ),
    "symbolic link": (lambda file: pack(file, entries(), _link(tarfile.SYMTYPE, linkname="/etc/passwd")), SPECIAL),
    "hard link": (
        lambda file: pack(file, entries(), _link(tarfile.LNKTYPE, linkname="config/default.toml")),
        SPECIAL,
    ),
    "device": (lambda file: pack(file, entries(), _link(tarfile.CHRTYPE, devmajor=1, devminor=5)), SPECIAL),
    "pipe": (lambda file: pack(file, entries(), _link(tarfile.FIFOTYPE)), SPECIAL),
    "a huge header": (lambda file: pack(file, {}, _add_huge_header), "contains a header of more than 64 KiB"),
    **{name: (_with_record(record), f"{RECORD} ({shown}") for name, (record, shown) in RECORDS.items()},
    "an alias of two devices": (_with_record(SHARED_ALIAS), f"{RECORD} ({SHARED_ALIAS_SHOWN}"),
}


SLOWLY_REFUSED = {"many files", "huge", "a small file after a huge file", "much data after its end"}

TOO_MUCH: dict[str, tuple[dict[str, Any], str]] = {
    "rooms": (
        {f"room/{number}": {"name": "x"} for number in range(MAX_ROOMS + 1)},
        "1,001 rooms, but a home can have at most 1,000",
    ),
    "groups": (
        {f"group/{number}": {"name": "x", "members": []} for number in range(MAX_GROUPS + 1)},
        "1,001 groups, but a home can have at most 1,000",
    ),
    "members": (
        {
            "group/a": {"name": "A", "members": [f"a:{number}" for number in range(MAX_MEMBERS)]},
            "group/b": {"name": "B", "members": ["a:1"]},
        },
        "20,001 members of groups, but a home can have at most 20,000",
    ),
    "variables": (
        {f"variable/v{number}": {"value": 1} for number in range(MAX_VARIABLES + 1)},
        "1,001 variables, but a home can have at most 1,000",
    ),
    "bytes of variables": (
        {f"variable/v{number}": {"value": "x" * 16_000} for number in range(17)},
        "272,034 bytes of variables, but a home can have at most 262,144",
    ),
    "keys": (
        {f"key/{number}": KEY_RECORD for number in range(MAX_KEYS + 1)},
        "1,001 API keys, but a home can have at most 1,000",
    ),
    "timers": (
        {f"timer/t{number}": {"started_at": 1, "due_at": 2} for number in range(MAX_TIMERS + 1)},
        "10,001 timers, but a home can have at most 10,000",
    ),
    "bytes of timers": (
        {f"timer/t{number}": {"started_at": 1, "due_at": 2, "payload": "x" * 16_000} for number in range(66)},
        "1,056,132 bytes of timers, but a home can have at most 1,048,576",
    ),
    "records": (
        {f"name/a:{number}": "A" for number in range(MAX_RECORDS + 1)},
        "100,001 records, but a home can have at most 100,000",
    ),
    "values": (
        {"variable/a": {"value": [0] * MAX_VALUES}},
        "1,000,002 values, but a home can have at most 1,000,000",
    ),
}
"""Records, each of which is valid, that are more than a home can have."""

LARGEST: dict[str, Any] = {
    **{f"room/{number}": {"name": "x"} for number in range(MAX_ROOMS)},
    **{f"group/{number}": {"name": "x", "members": []} for number in range(1, MAX_GROUPS)},
    "group/0": {"name": "A", "members": [f"a:{number}" for number in range(MAX_MEMBERS)]},
    **{f"variable/v{number}": {"value": 1} for number in range(MAX_VARIABLES)},
    **{f"variable/w{number}": {"last": [1]} for number in range(10)},
    **{f"key/{number}": KEY_RECORD for number in range(MAX_KEYS)},
}


class TestLimits:
    """A restore has the limits of the API. A backup of a home within the limits can be restored."""

    @pytest.mark.parametrize(("records", "sentence"), TOO_MUCH.values(), ids=TOO_MUCH)
    def test_too_many_records_are_refused_and_counted(
        self, tmp_path: Path, command: Command, records: dict[str, Any], sentence: str
    ) -> None:
        pack(tmp_path / "b", entries(state=records))
        before = everything(home(tmp_path))
        assert command(tmp_path, "restore", "b") == (65, f"lares: b contains {sentence}; nothing was restored\n")
        assert everything(tmp_path) == before

    def test_a_backup_reports_a_home_that_could_not_be_restored(self, tmp_path: Path, command: Command) -> None:
        records, sentence = TOO_MUCH["rooms"]
        home(tmp_path, records)
        assert command(tmp_path, "backup", "b") == (65, f"lares: the home has {sentence}; remove some\n")
        assert not (tmp_path / "b").exists()

    def test_a_backup_of_too_many_values_names_their_kinds(self, tmp_path: Path, command: Command) -> None:
        timer = {"started_at": 1, "due_at": 2, "payload": [0] * 7_997}
        preferences = {"a": [0] * 7_998}
        timers = {f"timer/t{number}": timer for number in range(60)}
        home(tmp_path, {**timers, **{f"preferences/key_{number}": preferences for number in range(70)}})
        _, line = command(tmp_path, "backup", "b")
        kinds = "most by kind of record: preferences 559,930, timer 480,000"
        assert f"a home can have at most 1,000,000 ({kinds}); remove some" in line

    def test_the_largest_home_is_restored(self, tmp_path: Path, command: Command) -> None:
        home(tmp_path, LARGEST)
        assert command(tmp_path, "backup", "b")[0] == 0
        assert command(tmp_path, "restore", "b")[0] == 0
        assert stored_values(tmp_path) == LARGEST

    def test_many_records_do_not_fill_the_memory(self, tmp_path: Path) -> None:
        box(tmp_path)
        rooms = ",".join(f'"room/r{number}":{{"name":"x"}}' for number in range(800_000))
        pack(tmp_path / "b", {**entries(), archive.STATE_FILE: f"{{{rooms}}}".encode()})
        result = _restore_with_memory(tmp_path, kib=700_000)
        assert (result.returncode, result.stderr) == (
            65,
            "lares: b contains 1,600,000 values, but a home can have at most 1,000,000; nothing was restored\n",
        )

    @pytest.mark.parametrize(
        ("records", "sentence"),
        [
            ({f"room/r{number}": {"name": "x"} for number in range(499_000)}, "499,000 rooms, but a home"),
            ({f"name/a:{number}": "A" for number in range(999_000)}, "999,000 records, but a home"),
            (
                {"state/a:1": {"at": 1, "is": {f"a{number}": 1 for number in range(490_000)}}},
                "an invalid record (state/a:1: 490,002 values, but a record can have at most 200,000)",
            ),
        ],
        ids=["rooms", "names", "attributes"],
    )
    def test_records_are_counted_before_they_are_decoded(
        self, tmp_path: Path, records: dict[str, Any], sentence: str
    ) -> None:
        box(tmp_path)
        pack(tmp_path / "b", entries(state=records))
        result = _restore_with_memory(tmp_path, kib=200_000)
        assert result.returncode == 65 and f"contains {sentence}" in result.stderr, result.stderr

    def test_the_largest_number_of_records_needs_little_memory(self, tmp_path: Path) -> None:
        box(tmp_path)
        pack(tmp_path / "b", entries(state={f"name/a:{number}": "A" for number in range(MAX_RECORDS)}))
        assert _restore_with_memory(tmp_path, kib=480_000).returncode == 0


STORED = {name: each for name, each in RECORDS.items() if None not in each[0].values()}
"""Invalid records that a document can contain."""


class TestInvalidRecords:
    """A backup omits records that a restore would refuse, so that a backup can always be restored."""

    @pytest.mark.parametrize(("record", "shown"), STORED.values(), ids=STORED)
    def test_an_invalid_record_is_omitted_and_reported(
        self, tmp_path: Path, command: Command, record: dict[str, Any], shown: str
    ) -> None:
        stored = {**HOME, **record}
        home(tmp_path, stored)
        code, result = command(tmp_path, "backup", "b")
        assert code == 0 and f"warning: the backup omits an invalid record ({shown}" in result
        assert command(tmp_path, "restore", "b")[0] == 0
        assert stored_values(tmp_path) == {key: value for key, value in stored.items() if key not in record}

    def test_a_place_in_an_invalid_room_is_omitted_too(self, tmp_path: Path, command: Command) -> None:
        home(tmp_path, {**HOME, "room/kitchen": {"name": "\x07"}})
        code, result = command(tmp_path, "backup", "b")
        assert code == 0 and "(place/lamp:light:0: room 'kitchen' is unknown)" in result
        assert command(tmp_path, "restore", "b")[0] == 0

    def test_only_the_first_of_two_equal_aliases_is_kept(self, tmp_path: Path, command: Command) -> None:
        home(tmp_path, {**HOME, **SHARED_ALIAS})
        code, result = command(tmp_path, "backup", "b")
        assert code == 0 and f"({SHARED_ALIAS_SHOWN})" in result
        assert command(tmp_path, "restore", "b")[0] == 0
        assert stored_values(tmp_path) == {**HOME, "alias/door": "lamp"}

    def test_many_invalid_records_are_counted(self, tmp_path: Path, command: Command) -> None:
        home(tmp_path, {**HOME, **{f"timer/{number:02}": {"at": 1} for number in range(MAX_SHOWN_RECORDS + 3)}})
        code, result = command(tmp_path, "backup", "b")
        assert code == 0 and result.count("the backup omits an invalid record (timer/") == MAX_SHOWN_RECORDS
        assert "warning: the backup omits 3 more invalid records\n" in result
        assert command(tmp_path, "restore", "b")[0] == 0
        assert stored_values(tmp_path) == HOME

    @pytest.mark.parametrize("attributes", [{"brightness": 900}, {"unknown": 1}, {"power": None}])
    def test_a_device_is_kept_with_an_attribute_that_another_version_wrote(
        self, tmp_path: Path, command: Command, attributes: dict[str, Any]
    ) -> None:
        stored = {**HOME, LAMP_STATE: {"at": 1767225600000, "is": {"power": "on", **attributes}}}
        home(tmp_path, stored)
        code, result = command(tmp_path, "backup", "b")
        assert code == 0 and "warning" not in result
        assert command(tmp_path, "restore", "b")[0] == 0
        assert stored_values(tmp_path) == stored


def _repack(file: Path, *, prefix: str = "", folders: bool = False, more: Mapping[str, bytes] | None = None) -> Path:
    """Pack an archive again, as people, browsers, and tar on a Mac do."""
    with tarfile.open(file, "w:gz") as tar:
        if folders:
            for name in ("./", "config", "config/scenes"):
                _link(tarfile.DIRTYPE, name)(tar)
        for name, data in {**(more or {}), **entries()}.items():
            entry = tarfile.TarInfo(prefix + name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return file


REPACKED: dict[str, Callable[[Path], Path]] = {
    "a plain tar": lambda file: _raw(file, gzip.decompress(pack(file, entries()).read_bytes())),
    "with folders": lambda file: _repack(file, folders=True),
    "from the present folder": lambda file: _repack(file, prefix="./", folders=True),
    "a plain tar from the present folder": lambda file: _raw(
        file, gzip.decompress(_repack(file, prefix="./", folders=True).read_bytes())
    ),
    "a plain tar with a large history": lambda file: _raw(
        file,
        gzip.decompress(_repack(file, more={"history/2026-01.jsonl": bytes(archive.MAX_ARCHIVE_BYTES)}).read_bytes()),
    ),
    "by tar on a Mac": lambda file: _repack(
        file, prefix="./", folders=True, more={"._lares-backup.json": b"mac", "config/.DS_Store": b"mac"}
    ),
}


def _raw(file: Path, data: bytes) -> Path:
    file.write_bytes(data)
    return file


def _sparse(file: Path, size: int) -> Path:
    with file.open("wb") as stream:
        stream.truncate(size)
    return file


def _restore_with_memory(folder: Path, *, kib: int) -> subprocess.CompletedProcess[str]:
    """Restore the archive `b` in a process with at most this address space."""
    return subprocess.run(
        ["/bin/sh", "-c", f"ulimit -v {kib}; exec {sys.executable} -m appliance restore b"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )


def _lying_size(file: Path, name: str = "config/x") -> bytes:
    """Write an archive whose last member claims to be far larger than the archive."""
    entry = tarfile.TarInfo(name)
    entry.size = 1 << 40
    plain = gzip.decompress(pack(file, entries()).read_bytes())[:-10240]
    return gzip.compress(plain + entry.tobuf())


class TestHostileArchives:
    """Whatever an archive contains, the error is one sentence, and nothing on the machine changes."""

    @pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
    def test_a_hostile_archive_changes_nothing(
        self, tmp_path: Path, command: Command, make: Callable[[Path], Path]
    ) -> None:
        folder = tmp_path / "box"
        folder.mkdir()
        file = make(tmp_path / "b")
        before = everything(home(folder))
        code, result = command(folder, "restore", str(file))
        assert (code, result) == (65, f"lares: {file} is not a backup of Lares, or is incomplete\n")
        assert everything(folder) == before
        assert sorted(each.name for each in tmp_path.iterdir()) == ["b", "box"]

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            pytest.param(*row, id=name, marks=[pytest.mark.slow] if name in SLOWLY_REFUSED else [])
            for name, row in REFUSED.items()
        ],
    )
    def test_the_error_names_the_unsupported_part(
        self, tmp_path: Path, command: Command, make: Callable[[Path], Path], message: str
    ) -> None:
        file = make(tmp_path / "b")
        before = everything(home(tmp_path))
        code, result = command(tmp_path, "restore", str(file))
        assert code == 65
        assert result.startswith(f"lares: {file} {message}") and result.endswith("; nothing was restored\n")
        assert result.count("\n") == 1 and len(result) < 400 and "\x1b" not in result
        assert everything(tmp_path) == before

    def test_a_history_that_cannot_be_written_changes_nothing(self, tmp_path: Path, command: Command) -> None:
        pack(tmp_path / "b", {**entries(state={}), "history/2026-01.jsonl": b"{}\n"})
        (home(tmp_path) / "data" / HISTORY_STAGE).write_text("in the way")
        before = everything(tmp_path)
        assert command(tmp_path, "restore", "b") == (
            os.EX_IOERR,
            f"lares: the history cannot be restored: {tmp_path / 'data' / HISTORY_STAGE}: File exists; nothing was "
            "changed\n",
        )
        assert everything(tmp_path) == before

    @pytest.mark.parametrize("make", REPACKED.values(), ids=REPACKED)
    def test_a_repacked_archive_is_restored(
        self, tmp_path: Path, command: Command, make: Callable[[Path], Path]
    ) -> None:
        file = make(tmp_path / "b")
        code, _ = command(home(tmp_path), "restore", str(file))
        assert code == 0 and stored_values(tmp_path) == HOME
        names = {each.name for each in (tmp_path / "config").rglob("*")}
        assert "default.toml" in names and not names & {".DS_Store", "._lares-backup.json"}

    def test_a_damaged_archive_is_refused_or_complete(self, tmp_path: Path) -> None:
        file = pack(tmp_path / "b", entries())
        data = file.read_bytes()
        with archive.opened(file) as whole:
            pass
        for place in range(0, len(data), 3):
            for bent in (data[:place], data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]):
                file.write_bytes(bent)
                try:
                    with archive.opened(file) as found:
                        pass
                except StartFailed as error:
                    assert error.exit_code == 65
                else:
                    assert replace(found, packed=None) == replace(whole, packed=None)

    @pytest.mark.parametrize("count", [None, 3])
    def test_a_truncated_plain_tar_is_incomplete(self, tmp_path: Path, count: int | None) -> None:
        """The last cut is in the end-of-archive marker. A backup of an earlier version contains no count."""
        page = PAGE if count is None else {**PAGE, "files": count}
        file = pack(tmp_path / "b", {**entries(page), "history/2026-11.jsonl": b"{}\n"})
        data = gzip.decompress(file.read_bytes())
        end = len(data.rstrip(b"\0")) // tarfile.BLOCKSIZE * tarfile.BLOCKSIZE + tarfile.BLOCKSIZE
        for size in range(128, end + tarfile.BLOCKSIZE, 128):
            file.write_bytes(data[:size])
            with pytest.raises(StartFailed, match="incomplete"), archive.opened(file):
                pass
        file.write_bytes(data[: end + tarfile.BLOCKSIZE])
        with archive.opened(file):
            pass

    def test_a_damaged_plain_tar_is_not_restored_in_part(self, tmp_path: Path) -> None:
        file = pack(tmp_path / "b", entries())
        data = bytearray(gzip.decompress(file.read_bytes()))
        data[data.index(b"config/default.toml")] ^= 1
        file.write_bytes(data)
        with (
            pytest.raises(StartFailed, match="b is incomplete or damaged; nothing was restored"),
            archive.opened(file),
        ):
            pass

    @pytest.mark.parametrize(
        "missing", ["state.json", "config/default.toml", "config/x.lua", "history/2026-11.jsonl"]
    )
    def test_an_archive_with_fewer_files_than_the_backup_is_incomplete(
        self, tmp_path: Path, command: Command, missing: str
    ) -> None:
        (home(tmp_path) / "config" / "x.lua").write_text("return {}")
        history = tmp_path / "data" / "history"
        history.mkdir()
        (history / "2026-11.jsonl").write_text("{}\n")
        assert command(tmp_path, "backup", "b")[0] == 0
        with archive.opened(tmp_path / "b"):
            pass
        before = everything(tmp_path)
        pack(tmp_path / "b", {name: data for name, data in members(tmp_path / "b").items() if name != missing})
        reason = "lares: b is incomplete: it contains 3 of 4 files; nothing was restored\n"
        assert command(tmp_path, "restore", "b") == (65, reason)
        assert {**everything(tmp_path), "b": b""} == {**before, "b": b""}

    @pytest.mark.parametrize("newer", [{"format": archive.ARCHIVE_FORMAT + 1}, {"store_format": STORE_FORMAT + 1}])
    def test_a_newer_archive_has_a_remedy(self, tmp_path: Path, command: Command, newer: dict[str, int]) -> None:
        file = pack(tmp_path / "b", entries({**PAGE, **newer, "version": "9.1"}))
        before = everything(home(tmp_path))
        code, result = command(tmp_path, "restore", str(file))
        assert code == 78
        assert (
            result == f"lares: {file} was made by a newer Lares, 9.1; restore it with that version or a later one\n"
        )
        assert everything(tmp_path) == before

    @pytest.mark.parametrize(("name", "why"), [("gone", "No such file or directory"), ("data", "Is a directory")])
    def test_an_unreadable_archive_is_66(self, tmp_path: Path, command: Command, name: str, why: str) -> None:
        code, result = command(home(tmp_path), "restore", name)
        assert (code, result) == (66, f"lares: {name} cannot be read: {why}\n")

    def test_a_compression_bomb_does_not_fill_the_memory(self, tmp_path: Path) -> None:
        box(tmp_path)
        with gzip.open(tmp_path / "b", "wb", compresslevel=1) as stream:
            for _ in range(1024):
                stream.write(bytes(1 << 20))
        result = _restore_with_memory(tmp_path, kib=900_000)
        assert (result.returncode, result.stderr) == (
            65,
            "lares: b is not a backup of Lares, or is incomplete\n",
        )
        assert str(ROOT) not in result.stderr


class TestHalfway:
    """A failed restore leaves the box unchanged."""

    @pytest.mark.parametrize("left", range(8))
    def test_an_unwritable_store_keeps_state_and_configuration(
        self, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, left: int
    ) -> None:
        home(tmp_path, {"room/old": {"name": "Old"}}, WAYS["section"])
        pack(tmp_path / "b", entries())
        before, old = everything(tmp_path), stored_values(tmp_path)
        changes = itertools.count()

        def change(whole: Callable[..., Any], *arguments: Any) -> Any:
            if next(changes) >= left:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return whole(*arguments)

        for name in ("pwrite", "fdatasync"):
            monkeypatch.setattr(os, name, partial(change, getattr(os, name)))
        code, result = command(tmp_path, "restore", "b")
        monkeypatch.undo()
        if code == 0:
            assert left > 4 and stored_values(tmp_path) == HOME
            return
        assert code == 74
        where = tmp_path / "data"
        assert result == f"lares: cannot restore: {where}: No space left on device; nothing was changed\n"
        assert everything(tmp_path) == before
        assert stored_values(tmp_path) == old

    @pytest.mark.parametrize(
        ("place", "name", "sentence"),
        [
            (Path, "write_bytes", "cannot restore: {0}/config.restore-part/.restored: {1}; nothing was changed"),
            (
                shutil,
                "copyfileobj",
                "the history cannot be restored: {0}/data/history.restore-part/2026-11.jsonl: {1}; "
                "nothing was changed",
            ),
        ],
    )
    def test_a_full_card_is_reported_with_the_path(
        self, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, sentence: str
    ) -> None:
        def fail(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        home(tmp_path)
        pack(tmp_path / "b", {**entries(), "history/2026-11.jsonl": b"{}\n"})
        before = everything(tmp_path)
        monkeypatch.setattr(place, name, fail)
        code, result = command(tmp_path, "restore", "b")
        monkeypatch.undo()
        assert code == 74 and everything(tmp_path) == before
        assert result == f"lares: {sentence.format(tmp_path, os.strerror(errno.ENOSPC))}\n"

    def test_without_the_versions_everything_else_is_restored(self, tmp_path: Path, command: Command) -> None:
        home(tmp_path)
        pack(tmp_path / "b", {**entries(), "versions/config%2Fscenes%2Fevening.lua.1.1767225600000": b"old"})
        versions = tmp_path / "data" / "versions"
        versions.touch()
        assert command(tmp_path, "restore", "b") == (
            74,
            f"lares: the versions of files were not restored ({versions}: Not a directory); everything else was "
            "restored\n",
        )
        assert stored_values(tmp_path) == HOME
        assert not (tmp_path / "config" / MARKER).exists()

    def test_an_immovable_configuration_folder_keeps_everything(self, tmp_path: Path, command: Command) -> None:
        folder = tmp_path.joinpath(*["d" * 250] * 13)
        folder.mkdir(parents=True)
        home(folder)
        file = pack(tmp_path / "b", {**entries(), f"config/{('y' * 240 + '/') * 3}{'z' * 240}": b""})
        before = everything(folder)
        code, result = command(folder, "restore", str(file))
        assert code == 74
        assert result.endswith("File name too long; nothing was changed\n")
        assert everything(folder) == before
