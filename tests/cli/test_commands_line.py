"""The command line for people and service managers: processes, output, exit codes, and signals."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from appliance.cli.homeassistant.lua_file import MARK
from appliance.cli.machine_zone import find_machine_zone
from appliance.cli.main import main
from appliance.config import bundled_config, load
from appliance.store.lock import DirectoryLock
from appliance.version import VERSION
from tests.cli.commands import (
    KEY,
    LOOPBACK,
    PATIENCE,
    WITH_KEY,
    Ended,
    Running,
    box,
    connection,
    ended,
    environment,
    lares,
    names,
    status_of,
    until,
)
from tests.fakes.process import free_port

CREATE = ["key", "create"]


STORE = {"lock", *(f"{kind}.{number:06d}.json" for kind in ("snapshot", "journal") for number in (1, 2))}
"""The store's files in the data directory after one or two starts."""


class TestSayings:
    def test_version_shows_lares_python_and_platform(self, tmp_path: Path) -> None:
        done = ended(tmp_path, "--version")
        assert done.code == 0
        first, second, third = done.out.splitlines()
        assert first == f"lares {VERSION}"
        assert second == f"Python {sys.version.split()[0]}"
        assert re.fullmatch(r"cpython-3\d+-\w+-linux-\w+", third)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["dance"], "unknown command dance; `lares` has the commands run, demo, check, init, try-adapter, "),
            (["statsu"], "unknown command statsu; did you mean `lares status`?"),
            (["key", "revok", "x"], "unknown command revok; did you mean `lares key revoke`?"),
            (["init", "a", "b"], "unrecognized arguments: b"),
            (["--loud"], "unrecognized arguments: --loud"),
            (["run", "now"], "unrecognized arguments: now"),
            (["check", "--config"], "argument --config: expected one argument"),
            (["demo", "--port", "65536"], "argument --port: must be a port from 0 to 65535, not 65536"),
            (["demo", "--port", "-1"], "argument --port: must be a port from 0 to 65535, not -1"),
            (["discover", "--seconds", "x"], "--seconds must be a number of seconds above 0, at most 30, not x"),
            (["--config", ""], "config is empty; specify a path, or omit the option"),
            (["backup", ""], "file is empty"),
            (["why", "\udcff"], r"\udcff is not UTF-8 text"),
            (["try-adapter", "hue", "--set", "token=\udcff"], r"token=\udcff is not UTF-8 text"),
            (
                ["simulate", "--from", "tomorrow"],
                "--from must be a time, such as 2026-12-24T18:00 (local time) or 2026-12-24T17:00:00Z",
            ),
            (["simulate", "--from", "2026-02-30"], "--from must be a time, such as"),
            (["simulate", "--from", "9999-12-31T23:59"], "in the years 1971 to 2099, not 9999-12-31T23:59"),
            (
                ["simulate", "--hours", "0"],
                "must be a number of hours above 0, at most 8784 (a year), not 0",
            ),
            (["simulate", "--hours", "9000"], "--hours: must be a number of hours"),
            (["simulate", "--hours", "nan"], "--hours: must be a number of hours"),
            (["simulate", "--from"], "--from: expected one argument"),
            (
                [*CREATE, "--label", "x", "--role", "owner"],
                "must be one of read, write, admin, automation, hook",
            ),
            ([*CREATE, "--label", " ", "--role", "read"], "label must have 1 to 100 characters, not 0"),
            ([*CREATE, "--label", "x" * 101, "--role", "read"], "label must have 1 to 100 characters, not 101"),
            ([*CREATE, "--label", "a\nb", "--role", "read"], "label must not contain control characters"),
            ([*CREATE, "--label", "x", "--role", "hook"], "a key with the role hook needs the id of a hook"),
            (
                [*CREATE, "--label", "x", "--role", "read", "--hook", "x"],
                "is only allowed with the role hook, not",
            ),
            ([*CREATE, "--role", "read"], "the following arguments are required: --label"),
            ([*CREATE, "--label", "x"], "the following arguments are required: --role"),
            (["key", "revoke"], "the following arguments are required: ID"),
            (["key", "revoke", "x" * 257], "id must have 1 to 256 characters, not 257"),
            (["key"], "the following arguments are required: COMMAND"),
            (
                ["key", "dance"],
                "unknown command dance; `lares key` has the commands create, list, revoke, reset-master",
            ),
            (["key", "list", "x"], "unrecognized arguments: x"),
        ],
    )
    def test_wrong_usage_is_64_and_a_sentence(
        self,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        arguments: list[str],
        message: str,
    ) -> None:
        monkeypatch.chdir(box(tmp_path))
        monkeypatch.delenv("LARES_DATA_DIR", raising=False)
        (tmp_path / "data").mkdir(mode=0o700)
        try:
            code = main(arguments)
        except SystemExit as left:
            code = int(left.code or 0)
        output = capsys.readouterr()
        *usage, sentence = output.err.splitlines()
        assert (code, output.out) == (64, "")
        assert not usage or usage[0].startswith("usage: lares")
        # Python versions put quotes around the choices in different ways.
        assert sentence.startswith("lares: ") and message in sentence.replace("'", "")

    @pytest.mark.parametrize(
        "words",
        [
            *(["devices"], ["simulate"], ["simulate", "--from"], ["why"], ["notify", "x"], ["help"], ["upgrade"]),
            *(
                ["history", "export", "--start"],
                ["discover", "--seconds"],
                ["demo", "--port"],
                ["simulate", "--hours"],
            ),
            *(
                ["try-adapter"],
                ["try-adapter", "--set"],
                ["log", "--lines"],
                ["key", "revoke"],
                ["backup"],
                ["init", "a"],
                [],
            ),
        ],
        ids=" ".join,
    )
    def test_a_long_argument_is_not_echoed_in_full(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
    ) -> None:
        monkeypatch.chdir(box(tmp_path))
        (tmp_path / "data").mkdir(mode=0o700)
        (tmp_path / "data" / "lock").touch()
        try:
            code = main([*words, "x" * 5000])
        except SystemExit as left:
            code = int(left.code or 0)
        output = capsys.readouterr()
        assert code and output.out == ""
        assert len(output.err.splitlines()[-1]) < 1100 and output.err.count("x") < 1100

    @pytest.mark.slow
    def test_a_missing_or_closed_output_causes_no_traceback(self, tmp_path: Path) -> None:
        command = f"{sys.executable} -m appliance --version"
        helped = command.replace("--version", "--help")
        full = "lares: standard output cannot be written: No space left on device\n"
        for shell, code, reply in (
            *((f"{command} | true", 0, ""), (f"{helped} | true", 0, "")),
            *((f"{command} >&-", 0, ""), (f"{command} >&- 2>&-", 0, "")),
            *((f"{command} >/dev/full", 74, full), (f"{helped} >/dev/full", 74, full)),
            (f"{command.replace('--version', 'completion bash')} >/dev/full", 74, full),
            (f"{command.replace('--version', 'status')} 2>/dev/full", 69, ""),
        ):
            done = subprocess.run(["/bin/sh", "-c", shell], cwd=tmp_path, env=environment(), capture_output=True)
            assert (done.returncode, done.stderr.decode()) == (code, reply), shell
        box(tmp_path)
        for arguments, code in ((["completion", "bash"], 0), (["help"], 0), (["--licenses"], 0), (["check"], 74)):
            reading, writing = os.pipe()
            os.close(reading)
            with lares(tmp_path, *arguments, stdout=writing) as running:
                os.close(writing)
                assert running.end() == Ended(code=code, out="", err=""), arguments
        too_long = ended(tmp_path, "--config", "x" * 300)
        assert (too_long.code, too_long.err) in (
            (74, f"lares: {tmp_path}/{'x' * 300}: File name too long\n"),
            (78, f"lares: there is no configuration file {tmp_path}/{'x' * 300}\n"),  # the message since Python 3.14
        )


class TestCheck:
    def test_a_valid_configuration_exits_with_0(self, tmp_path: Path) -> None:
        file = box(tmp_path) / "config" / "default.toml"
        assert ended(tmp_path, "check") == Ended(code=0, out=f"{file}: no faults\n", err="")
        assert not (tmp_path / "data").exists()

    def test_every_error_is_a_line_with_file_and_line_and_the_code_is_78(self, tmp_path: Path) -> None:
        file = box(tmp_path, "[api]\nbind_adress = 1\n[logging]\nlevel = 'loud'\n") / "config" / "default.toml"
        done = ended(tmp_path, "check", LARES_MASTER_KEY="two words")
        assert done.code == 78
        assert done.out.splitlines() == [
            f"{file}:2: api.bind_adress is not a key of Lares; did you mean api.bind_address?",
            f"{file}:4: logging.level must be one of debug, info, warning, error, not 'loud'",
            "LARES_MASTER_KEY: the master key must be a string of visible ASCII characters without spaces",
        ]
        assert done.err == "lares: 3 faults found\n"

    @pytest.mark.slow
    def test_errors_of_all_lua_files_are_reported_with_those_of_the_configuration(self, tmp_path: Path) -> None:
        file = box(tmp_path, "[api]\nbind_adress = 1\n") / "config" / "default.toml"
        lua = {
            "scenes/a.lua": 'return {\n  id = "a",\n  nmae = "A",\n  execute = function(ctx) end,\n}\n',
            "scenes/b.lua": 'return {\n  id = "b", name = "B", execute = print,\n  end = "23:00",\n}\n',
            "scenes/c.lua": 'return { id = "c", name = "C", execute = print }',
            "scenes/d.lua": 'return { id = "c", name = "D", execute = print }',
            "scripts/deep/e.lua": "local = 1",
        }
        for name, text in lua.items():
            (tmp_path / "config" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "config" / name).write_text(text)
        expected = [
            f"{file}:2: api.bind_adress is not a key of Lares; did you mean api.bind_address?",
            "config/scenes/a.lua:1: name is missing",
            "config/scenes/a.lua:3: nmae is not a field; did you mean name?",
            "config/scenes/b.lua:3: ",
            "config/scenes/d.lua:1: config/scenes/c.lua already has the id 'c' and takes precedence; ",
            "config/scripts/deep/e.lua:1: <name> expected near '='",
        ]
        for count in (6, 5):
            done = ended(tmp_path, "check")
            assert (done.code, done.err) == (78, f"lares: {count} faults found\n")
            for line, beginning in zip(done.out.splitlines(), expected[-count:], strict=True):
                assert line.startswith(beginning)
            assert '["end"] =' in done.out
            box(tmp_path)

    def test_disabled_sections_are_not_checked(self, tmp_path: Path) -> None:
        box(tmp_path, "[scenes]\nenabled = false\n[scripts]\nenabled = false\n")
        for folder in ("scenes", "scripts"):
            (tmp_path / "config" / folder).mkdir()
            (tmp_path / "config" / folder / "x.lua").write_text("return {")
        (tmp_path / "config" / "automations").mkdir(exist_ok=True)
        trigger = '{type = "interval", every_secs = 9}'
        text = f'return {{id = "x", name = "X", trigger = {trigger}, execute = function() require("x") end}}'
        (tmp_path / "config" / "automations" / "x.lua").write_text(text)
        done = ended(tmp_path, "check")
        assert (done.code, "scripts are disabled" in done.out) == (0, True), done.out

    def test_names_in_imported_automations_that_are_switched_off_are_checked(self, tmp_path: Path) -> None:
        box(tmp_path)
        (tmp_path / "config" / "automations").mkdir(exist_ok=True)
        text = """return { id = "x", name = "X", enabled = false,
  trigger = { type = "device_event", device_id = "gone:button" },
  execute = function(ctx) ctx:get_device("gone:lamp") end }"""
        file = tmp_path / "config" / "automations" / "x.lua"
        file.write_text(text)
        assert "gone" not in ended(tmp_path, "check").out
        file.write_text(f"{text}\n{MARK}x")
        done = ended(tmp_path, "check")
        assert done.code == 0
        for line, name in ((2, "gone:button"), (3, "gone:lamp")):
            assert (
                f"x.lua:{line}: " in done.out
                and f"names '{name}', but there is no section [adapters.gone]" in done.out
            )

    def test_a_warning_is_shown_and_is_not_an_error(self, tmp_path: Path) -> None:
        done = ended(box(tmp_path), "check", LARES_MASTER_KEY="short")
        assert done.code == 0
        assert done.out.startswith("warning: LARES_MASTER_KEY: the master key is shorter than 16 characters; ")

    def test_missing_files_of_sections_are_reported(self, tmp_path: Path) -> None:
        sections = {
            "hue": ("type = 'hue'\nbase_url = 'http://127.0.0.1'", "token_file", "secrets/hue"),
            "ntfy": ("type = 'notify'\nurl = 'http://127.0.0.1/'", "token_file", "n"),
            "mqtt": ("type = 'mqtt'\nhost = 'h'\nusername = 'u'", "password_file", "p"),
        }
        toml = "".join(f"[adapters.{n}]\n{rest}\n{key} = '{file}'\n" for n, (rest, key, file) in sections.items())
        done = ended(box(tmp_path, toml), "check")
        assert done.code == 0
        for name, (_, key, file) in sections.items():
            assert f"adapters.{name}.{key} names " in done.out and f"{file}, but this file does not exist" in done.out
        assert done.out.count("warning: ") == len(sections)

    @pytest.mark.parametrize("file", ["/", "/dev/zero", "pipe", "config"])
    def test_special_files_of_sections_are_reported(self, tmp_path: Path, file: str) -> None:
        os.mkfifo(tmp_path / "pipe")
        toml = f"[adapters.mqtt]\ntype = 'mqtt'\nhost = 'h'\nusername = 'u'\npassword_file = '{file}'\n"
        done = ended(box(tmp_path, toml), "check")
        assert done.code == 0 and "but this is not a regular file" in done.out

    @pytest.mark.parametrize("command", ["check", "simulate"])
    def test_a_missing_configuration_is_not_written(self, tmp_path: Path, command: str) -> None:
        done = ended(tmp_path, command)
        assert done == Ended(
            code=78,
            out="",
            err=f"lares: there is no configuration file {tmp_path}/config/default.toml; `lares run` writes it\n",
        )
        assert not (tmp_path / "config").exists()

    def test_an_undecodable_name_is_shown(self, tmp_path: Path) -> None:
        folder = tmp_path / os.fsdecode(b"caf\xe9")
        box(folder, "[api]\nx = 1\n")
        done = ended(folder, "check", LC_ALL="C.UTF-8")
        assert done.code == 78
        assert "/caf\\udce9/config/default.toml:2: api.x is not a key" in done.out


class TestInit:
    def test_init_begins_with_the_named_configuration(self, tmp_path: Path) -> None:
        file = box(tmp_path / "mine") / "config" / "home.toml"
        file.write_text(LOOPBACK + "# mine\n")
        done = ended(tmp_path, "init", "home", "--config", "mine/config/home.toml", "--data-dir", "there")
        assert done.code == 0 and (tmp_path / "home/config/home.toml").read_text() == file.read_text()
        options = f" --config {tmp_path}/home/config/home.toml --data-dir {tmp_path}/there"
        assert done.out.splitlines()[-1].startswith("Run it with: ") and done.out.endswith(f"{options}\n")
        assert ended(tmp_path, "init", "other", "--config", "nowhere.toml").code == 78

    @pytest.mark.parametrize(
        ("started", "is_executable", "shown"),
        [
            (["python3", "-m", "appliance"], False, "python3 -m appliance"),
            (["python3", "lares.pyz"], False, "python3 lares.pyz"),
            (["/usr/bin/python3.11", "-I", "lares.pyz"], False, "/usr/bin/python3.11 -I lares.pyz"),
            (["python3", "./lares.pyz"], True, "./lares.pyz"),
            (["python3", "lares.pyz"], True, "./lares.pyz"),
            (["python3", "sub dir/lares.pyz"], True, "'./sub dir/lares.pyz'"),
            (["python3", "bin/lares"], True, "lares"),
        ],
    )
    def test_init_shows_a_command_that_the_user_can_type(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        started: list[str],
        is_executable: bool,
        shown: str,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        if started[1] != "-m":
            (tmp_path / started[-1]).parent.mkdir(exist_ok=True)
            (tmp_path / started[-1]).touch(0o755 if is_executable else 0o644)
        monkeypatch.setattr(sys, "argv", [started[-1], "init", "home"])
        monkeypatch.setattr(sys, "orig_argv", [*started, "init", "home"])
        assert main(["init", "home"]) == 0
        assert f"Run it with: {shown} --config {tmp_path}/home" in capsys.readouterr().out

    @pytest.mark.slow
    def test_a_fresh_configuration_is_valid_and_complete(self, tmp_path: Path) -> None:
        done = ended(tmp_path, "init", "home")
        files = (file.relative_to(bundled_config()) for file in bundled_config().rglob("*") if file.is_file())
        bundled = {file for file in files if file.parts[0] != "recipes"}
        assert done.code == 0
        assert {line for line in done.out.splitlines() if line.startswith("wrote ")} == {
            f"wrote {tmp_path}/home/config/{file}" for file in bundled
        }
        assert Path("scenes/all_off.lua") in bundled
        assert ended(tmp_path, "check", "--config", "home/config/default.toml").code == 0

    def test_a_fresh_configuration_has_the_time_zone_of_the_machine(self, tmp_path: Path) -> None:
        for zone, stated in (("Europe/Berlin", "Europe/Berlin"), ("UTC", "UTC")):
            assert ended(tmp_path, "init", stated, TZ=zone).code == 0
            text = (tmp_path / stated / "config" / "default.toml").read_text()
            assert f'\ntimezone = "{stated}"\n' in text

    @pytest.mark.parametrize(
        ("variable", "target", "zone"),
        [
            ("", "/usr/share/zoneinfo/America/New_York", "America/New_York"),
            ("", "/usr/share/zoneinfo/Etc/UTC", None),
            ("", "/etc/nothing", None),
            (":Asia/Tokyo", "/usr/share/zoneinfo/America/New_York", "Asia/Tokyo"),
            ("CET-1CEST", "/usr/share/zoneinfo/America/New_York", None),
            ("", "/usr/share/zoneinfo/posix/Europe/Berlin", "Europe/Berlin"),
            ("", "/usr/share/zoneinfo/right/Europe/Berlin", "Europe/Berlin"),
        ],
    )
    def test_the_time_zone_of_the_machine(self, tmp_path: Path, variable: str, target: str, zone: str | None) -> None:
        (tmp_path / "localtime").symlink_to(target)
        assert find_machine_zone({"TZ": variable}, tmp_path) == zone

    @pytest.mark.parametrize(
        ("content", "zone"),
        [(b"Europe/Paris\n", "Europe/Paris"), (b"Etc/UTC\n", None), (b'" \xff', None), (b"x" * 5000, None)],
    )
    def test_without_a_name_in_localtime_the_zone_is_in_the_file_timezone(
        self, tmp_path: Path, content: bytes, zone: str | None
    ) -> None:
        (tmp_path / "timezone").write_bytes(content)
        assert find_machine_zone({}, tmp_path) == zone
        (tmp_path / "localtime").write_bytes(b"TZif2")
        assert find_machine_zone({}, tmp_path) == zone
        (tmp_path / "localtime").unlink()
        (tmp_path / "localtime").symlink_to("/usr/share/zoneinfo/Asia/Tokyo")
        assert find_machine_zone({}, tmp_path) == "Asia/Tokyo"

    def test_existing_files_are_kept_and_missing_ones_added(self, tmp_path: Path) -> None:
        box(tmp_path, "# mine\n")
        done = ended(tmp_path, "init", ".")
        assert "default.toml\n" not in done.out.split("Run it with")[0]
        assert (tmp_path / "config/default.toml").read_text() == "# mine\n"
        assert (tmp_path / "config/scenes/all_off.lua").exists()
        assert "already complete; nothing was changed" in ended(tmp_path, "init", ".").out

    def test_a_folder_that_cannot_be_written_is_73(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        assert ended(tmp_path, "init", "file").code == 73


class TestRefusals:
    """Starts that end immediately, with a message and without creating files."""

    def test_a_faulty_configuration_is_78_with_every_error(self, tmp_path: Path) -> None:
        file = box(tmp_path, "[api]\nx = 1\ny = 2\n") / "config" / "default.toml"
        done = ended(tmp_path)
        assert done.code == 78
        assert [line.removeprefix("lares: ").split(" is ")[0] for line in done.err.splitlines()] == [
            f"{file}:2: api.x",
            f"{file}:3: api.y",
        ]
        assert not (tmp_path / "data").exists()

    def test_the_same_id_in_two_files_is_78_and_names_both(self, tmp_path: Path) -> None:
        scenes = box(tmp_path) / "config" / "scenes"
        scenes.mkdir()
        for name in ("a", "b"):
            (scenes / f"{name}.lua").write_text('return { id = "x", name = "X", execute = function(ctx) end }')
        done = ended(tmp_path, "run")
        message = "lares: config/scenes/b.lua:1: config/scenes/a.lua already has the id 'x' "
        message += "and takes precedence; give this file another id"
        assert (done.code, done.err.splitlines()[-1]) == (78, message)

    @pytest.mark.parametrize("command", ["run", "check", "reload", "status", "why x", "key list", "history export"])
    def test_a_missing_named_configuration_is_78_and_not_written(self, tmp_path: Path, command: str) -> None:
        done = ended(box(tmp_path), *command.split(), LARES_CONFIG="gone.toml")
        assert (done.code, done.err) == (78, f"lares: there is no configuration file {tmp_path}/gone.toml\n")
        assert not (tmp_path / "gone.toml").exists()

    @pytest.mark.slow
    def test_a_used_port_is_69_with_a_remedy(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            box(tmp_path, f'[api]\nbind_address = "127.0.0.1:{port}"\n')
            with lares(tmp_path, "run", variables=WITH_KEY) as running:
                demo = ended(tmp_path, "demo", "--port", str(port), TMPDIR=str(tmp_path))
                done = running.end()
        for each in (done, demo):
            assert each.code == 69
            sentence = each.err.splitlines()[-1]
            assert sentence.startswith(f"lares: port {port} is used by another program")
            assert "api.bind_address" in sentence
        assert not list(tmp_path.glob("lares-demo-*"))

    def test_an_address_that_this_machine_does_not_have_is_69(self, tmp_path: Path) -> None:
        box(tmp_path, '[api]\nbind_address = "192.0.2.1:0"\n')
        done = ended(tmp_path, "run", LARES_MASTER_KEY=KEY)
        assert done.code == 69
        assert done.err.splitlines()[-1].startswith("lares: cannot listen at 192.0.2.1 port 0: ")


class TestFirstConfiguration:
    """If there is no configuration, the bundled one is written."""

    def test_the_bundled_configuration_is_written_and_reported_even_if_the_start_fails(self, tmp_path: Path) -> None:
        done = ended(tmp_path, "run", LARES_MASTER_KEY="short")
        assert done.code == 78
        assert done.err.splitlines()[-1].startswith("lares: LARES_MASTER_KEY: the master key is shorter than 16")
        assert not (tmp_path / "data").exists()
        assert f"hub: no configuration found: the bundled one was copied to {tmp_path}/config\n" in done.err
        for file in bundled_config().rglob("*.toml"):
            assert (tmp_path / "config" / file.relative_to(bundled_config())).read_bytes() == file.read_bytes()

    def test_an_existing_file_is_never_overwritten(self, tmp_path: Path) -> None:
        box(tmp_path, "# mine, and faulty\nx = 1\n")
        done = ended(tmp_path, "run")
        assert done.code == 78
        assert "no configuration found" not in done.err
        assert (tmp_path / "config" / "default.toml").read_text() == "# mine, and faulty\nx = 1\n"
        (tmp_path / "config" / "default.toml").rename(tmp_path / "config" / "other.toml")
        assert ended(tmp_path, "run", LARES_MASTER_KEY="short").code == 78
        assert (tmp_path / "config" / "other.toml").read_text() == "# mine, and faulty\nx = 1\n"


class TestTheFirstKey:
    """The master key of a machine on which no key was configured."""

    @pytest.mark.slow
    def test_the_first_key_is_in_a_private_file_until_its_first_use(self, tmp_path: Path) -> None:
        data = box(tmp_path) / "data"
        with lares(tmp_path, "run") as running:
            url = running.url()
            assert stat.S_IMODE(data.stat().st_mode) == 0o700
            assert stat.S_IMODE((data / "first-key").stat().st_mode) == 0o600
            assert stat.S_IMODE((data / "control.sock").stat().st_mode) == 0o600
            key = (data / "first-key").read_text().strip()
            assert f"the master key was created; it is in {data}/first-key until its first use" in running.err
            assert status_of(url, None) == status_of(url, key[:-2] + "xx") == status_of(url, "x") == 401
            assert (data / "first-key").exists()
            assert status_of(url, key) == 200
            assert not (data / "first-key").exists()
            message = running.stop()
            assert key not in message.out + message.err and key[-43:] not in message.out + message.err
        with lares(tmp_path, "run") as running:
            assert status_of(running.url(), key) == 200
            assert "the master key was created" not in running.stop().err
        assert names(data) - STORE == set()

    @pytest.mark.slow
    def test_on_a_terminal_the_first_key_is_shown_once_and_written_nowhere(self, tmp_path: Path) -> None:
        box(tmp_path)
        first = self.start_on_a_terminal(tmp_path)
        [key] = re.findall(r"lrs_master_[\w-]{43}", first)
        assert "The master key of this hub (it is not shown again):" in first
        assert self.start_on_a_terminal(tmp_path, key) == ""

    def start_on_a_terminal(self, folder: Path, key: str | None = None) -> str:
        """Start the hub, use the key if there is one, and stop the hub. Return the output on the terminal."""
        ours, theirs = pty.openpty()
        with io.FileIO(ours) as terminal, lares(folder, "run", stdout=theirs) as running:
            os.close(theirs)
            assert status_of(running.url(), key) == (401 if key is None else 200)
            assert "lrs_master" not in running.stop().err
            assert names(folder / "data") - STORE == set()
            return read_all(terminal)


def read_all(terminal: io.FileIO) -> str:
    """Return the terminal output of ended processes."""
    done = b""
    with contextlib.suppress(OSError):  # Linux raises this error after the last writer has closed the terminal
        while part := terminal.read(4096):
            done += part
    return done.decode()


class TestSignals:
    """Signals that end a hub, and events that do not."""

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_the_first_signal_stops_the_hub_in_order(self, tmp_path: Path, number: signal.Signals) -> None:
        with lares(box(tmp_path), "run", variables=WITH_KEY) as running:
            with connection(running.url()) as idle, connection(running.url()) as used:
                used.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                assert used.recv(4096).startswith(b"HTTP/1.1 200")
                message = running.stop(number).err
                assert idle.recv(1) == b""
        assert [line.split(" hub: ")[1] for line in message.splitlines()[-2:]] == ["stopping", "stopped"]

    def test_a_hub_whose_parent_blocks_signals_stops_in_order(self, tmp_path: Path) -> None:
        parent = (
            "import os, signal, sys; "
            "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGHUP]); "
            "os.execv(sys.executable, [sys.executable, '-m', 'appliance', 'run'])"
        )
        log = tmp_path / "log"
        command = [sys.executable, "-c", parent]
        with log.open("wb") as stream:
            process = subprocess.Popen(
                command, cwd=box(tmp_path), env=environment(**WITH_KEY), stdout=stream, stderr=stream
            )
        running = Running(process, log, log)
        try:
            running.url()
            running.send(signal.SIGHUP)
            running.says("reload requested")
            running.stop()
        finally:
            process.kill()
            process.wait()

    def test_a_second_signal_ends_the_hub_at_once(self, tmp_path: Path) -> None:
        with lares(box(tmp_path), "run", variables=WITH_KEY) as running:
            url = running.url()
            with connection(url) as client:
                head = f"POST /rooms HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Length: 9\r\n\r\n"
                client.sendall(head.encode())
                assert status_of(url, KEY) == 200
                running.send(signal.SIGINT)
                running.says("hub: stopping")
                assert running.process.poll() is None
                running.send(signal.SIGINT)
                assert running.end().code == 130, "the first alone gives requests three seconds, and ends with 0"
        lock = DirectoryLock(tmp_path / "data")
        assert not lock.is_crash, "it was asked to end: that is no crash"
        lock.release()

    def test_a_hangup_never_ends_the_hub(self, tmp_path: Path) -> None:
        with lares(box(tmp_path), "run") as running:
            running.says("hub: Lares")
            running.send(signal.SIGHUP)
            url = running.url()
            running.send(signal.SIGHUP)
            running.says("hub: reload requested")
            assert status_of(url, None, path="/health") == 200
            running.stop()

    @pytest.mark.slow
    def test_a_hangup_reloads_every_folder_of_lua_files(self, tmp_path: Path) -> None:
        scenes = box(tmp_path) / "config" / "scenes"
        scenes.mkdir()
        with lares(tmp_path, "run") as running:
            running.url()
            (scenes / "x.lua").write_text('return { id = "x", name = "X", execute = function(ctx) end }')
            running.send(signal.SIGHUP)
            running.says("scenes reloaded loaded=1")
            running.says("scripts reloaded loaded=0")
            (scenes / "x.lua").write_text("return {")
            running.send(signal.SIGHUP)
            running.says("scenes not reloaded: config/scenes/x.lua:1: ")
            running.stop()


class TestLogLines:
    """The output of a hub during start, run, and stop."""

    def test_under_systemd_log_lines_have_a_priority_and_no_time(self, tmp_path: Path) -> None:
        box(tmp_path)
        (tmp_path / "0.err").touch()
        status = (tmp_path / "0.err").stat()
        journal = f"{status.st_dev}:{status.st_ino}"
        with lares(tmp_path, "run", variables={"JOURNAL_STREAM": journal}) as running:
            running.url()
            message = running.stop().err
        lines = message.splitlines()
        assert lines[0].startswith(f"<6>hub: Lares {VERSION} starts config=")
        assert all(re.match(r"<[2-7]>\w+: .", line) for line in lines)
        assert [line for line in lines if line.startswith("<4>keys: the master key was created")]


class TestDemo:
    """`lares demo`: a home to try."""

    @pytest.mark.slow
    def test_demo_runs_a_copy_of_the_named_configuration_and_keeps_named_data(self, tmp_path: Path) -> None:
        scene = box(tmp_path) / "config" / "scenes" / "mine.lua"
        scene.parent.mkdir()
        scene.write_text('return { id = "mine", name = "Mine", execute = function(ctx) end }')
        named = ("--config", "config/default.toml", "--data-dir", "there")
        with lares(tmp_path, "demo", "--port", "0", *named, variables={"TMPDIR": str(tmp_path)}) as running:
            running.says(r"Ctrl-C ends the demo\.")
            url, key = running.says(r"REST +(http://127\.0\.0\.1:\d+)\n")[1], running.says(r"key +(\S+)\n")[1]
            assert status_of(url, key, path="/scenes/mine/history") == 200
            running.stop()
            assert running.says(r"its data is in there\.")
        assert (tmp_path / "there" / "lock").exists() and scene.exists()

    @pytest.mark.slow
    def test_the_three_printed_commands_of_demo_work_and_their_effects_are_shown(self, tmp_path: Path) -> None:
        with lares(tmp_path, "demo", "--port", "0", variables={"TMPDIR": str(tmp_path)}) as running:
            running.says(r"Ctrl-C ends the demo\.")
            url = running.says(r"REST +(http://127\.0\.0\.1:\d+)\n")[1]
            assert running.says(r"events +(ws://\S+)\n")[1] == url.replace("http", "ws") + "/events"
            key = running.says(r"key +(\S+)\n")[1]
            assert status_of(url, key) == 200 and status_of(url, None) == 401
            for address in re.findall(r"(?:light|server|TV) \((http://\S+)\)", running.out):
                assert status_of(address, None, path="/") == 404
            lines = re.findall(r"^    (curl .+)$", running.out, re.MULTILINE)
            devices, on, dim = map(run_printed, lines)
            matter = [f"matter:sim-{each}" for each in ("1:1", "2:1", "3:1", "4:1", "4:2")]
            assert [device["id"] for device in devices] == ["elgato_lights:light:0", *matter, "roku_tv:tv"]
            assert on == dim == {"status": "ok"}
            running.says(r'"brightness":80')
            frames = [json.loads(line) for line in running.out.splitlines() if line.startswith("{")]
            [*_, last] = [frame for frame in frames if frame.get("id") == "elgato_lights:light:0"]
            assert last["type"] == "device.state_changed"
            assert last["state"]["brightness"] == 80 and last["state"]["power"] == "on"
            done = running.stop(signal.SIGINT)
        assert done.err == ""
        assert done.out.endswith("The demo has ended; its files were removed.\n")
        assert not [name for name in names(tmp_path) if "lares" in name]
        assert not (tmp_path / "config").exists() and not (tmp_path / "data").exists()

    @pytest.mark.slow
    def test_demo_ends_with_its_terminal(self, tmp_path: Path) -> None:
        with lares(tmp_path, "demo", "--port", "0", variables={"TMPDIR": str(tmp_path)}) as running:
            running.says(r"Ctrl-C ends the demo\.")
            running.stop(signal.SIGHUP)
        assert not list(tmp_path.glob("lares-demo-*"))

    @pytest.mark.slow
    def test_demo_ends_when_its_output_is_closed(self, tmp_path: Path) -> None:
        reading, writing = os.pipe()
        with (
            io.FileIO(reading) as reader,
            lares(tmp_path, "demo", "--port", "0", stdout=writing, variables={"TMPDIR": str(tmp_path)}) as running,
        ):
            os.close(writing)
            done = b""
            while b"Ctrl-C" not in done:
                done += (read := reader.read(4096))
                assert read, (done, running.err)
            reader.close()
            run_printed(re.findall(r"^    (curl .+)$", done.decode(), re.MULTILINE)[2])
            assert running.end().code == 0
        assert not list(tmp_path.glob("lares-demo-*"))

    @pytest.mark.slow
    def test_a_kept_demo_can_be_opened_again_by_demo_or_run(self, tmp_path: Path) -> None:
        with lares(tmp_path, "demo", "--keep", "home", "--port", "0", variables=WITH_KEY) as running:
            url = running.url()
            assert url.startswith("http://127.0.0.1:") and "contains a demo home" in running.out
            until(lambda: "it asks for a key" in running.out, "the greeting")
            for printed in (r"key create .*--role admin", r"demo --keep \S+/home --port 0"):
                assert re.search(rf"^    .* {printed}$", running.out, re.MULTILINE)
            until(lambda: status_of(url, KEY, path="/devices/virtual:thermometer") == 200, "the devices")
            running.stop()
        file = tmp_path / "home" / "config" / "default.toml"
        assert len(load(file, {}).adapters["virtual"].devices) == 6
        file.write_text(file.read_text().replace('"Lamp"', '"My own"'))
        before = file.read_bytes()
        for arguments in (["demo", "--keep", "../../home", "--port", "0"], ["run"]):
            folder = tmp_path / "home" / "data" if arguments[0] == "demo" else file.parent.parent
            if arguments[0] == "run":
                file.write_bytes(before.replace(b"127.0.0.1:3000", b"127.0.0.1:0"))
            with lares(folder, *arguments, variables=WITH_KEY) as running:
                url = running.url()
                until(lambda: status_of(url, KEY, path="/devices/virtual:lamp") == 200, "the devices")  # noqa: B023
                if arguments[0] == "demo":
                    until(lambda: "it asks for a key" in running.out, "the greeting")
                assert ".." not in running.out
                running.stop()
            assert file.read_bytes().replace(b"127.0.0.1:0", b"127.0.0.1:3000") == before

    @pytest.mark.slow
    def test_a_new_kept_demo_saves_its_port(self, tmp_path: Path) -> None:
        port = free_port()
        for arguments in (["demo", "--keep", "home", "--port", str(port)], ["demo", "--keep", "home"]):
            with lares(tmp_path, *arguments, variables=WITH_KEY) as running:
                assert running.url() == f"http://127.0.0.1:{port}"
                until(lambda: "it asks for a key" in running.out, "the greeting")
                assert "--port" not in running.out
                running.stop()
        config = load(tmp_path / "home" / "config" / "default.toml", {})
        assert config.api.bind_address.port == port


def run_printed(line: str) -> Any:
    """Return the output of a curl command as JSON. If curl is missing, send the same request without curl."""
    if shutil.which("curl"):
        done = subprocess.run(["/bin/sh", "-c", line], check=True, capture_output=True, timeout=PATIENCE)
        return json.loads(done.stdout)
    _program, _silent, _with_header, header, url, *data = shlex.split(line)
    name, _, value = header.partition(": ")
    body = data[1].encode() if data else None
    with urllib.request.urlopen(urllib.request.Request(url, body, {name: value}), timeout=PATIENCE) as answer:
        return json.load(answer)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_a_lack_of_memory_is_reported_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    def fail(_: object) -> int:
        raise error

    monkeypatch.setattr("appliance.cli.main._command", fail)
    assert main(["check"]) == os.EX_OSERR
    assert capsys.readouterr().err.startswith("lares: too little memory, or too many threads; raise the limits")
