"""`lares key` manages keys on the hub's machine, with and without a running hub."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from appliance.api.http_server.server import MAX_CONTROL_CONNECTIONS
from appliance.api.tokens import KeyToken
from appliance.cli import hub_client
from appliance.cli.hub_client import HubRequest
from appliance.cli.main import main
from appliance.errors import StartFailed
from appliance.store.lock import DirectoryLock
from appliance.store.restore import read_document
from tests.cli.commands import Ended, Running, box, ended, environment, lares, names, status_of, until

CREATE = ("key", "create", "--label", "kitchen tablet", "--role", "read")
SECRET = re.compile(r"lrs_[a-z0-9]+_[\w-]{43}\n")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Create a box with a data directory, without a running hub."""
    (box(tmp_path) / "data").mkdir(mode=0o700)
    return tmp_path


def first_key(folder: Path) -> str:
    return (folder / "data" / "first-key").read_text().strip()


def stored(folder: Path) -> list[str]:
    return [key.removeprefix("key/") for key in read_document(folder / "data").values if key.startswith("key/")]


def in_shell(folder: Path, words: tuple[str, ...], output: str) -> tuple[int, str]:
    """Run the command with redirected output, after the reader of a pipe has ended. Return the exit code and the
    errors."""
    command = shlex.join([sys.executable, "-P", "-m", "appliance", *words])
    script = f"set -o pipefail; {{ sleep 0.3; {command}; }} {output}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True, timeout=60
    )
    return done.returncode, done.stderr


def end_with(folder: Path, words: tuple[str, ...], output: int, *options: str) -> tuple[int, str]:
    """Run the command with this descriptor as standard output, and with these options of Python. Return the exit code
    and the errors."""
    command = [sys.executable, *options, "-P", "-m", "appliance", *words]
    done = subprocess.run(
        command, cwd=folder, env=environment(), stdout=output, stderr=subprocess.PIPE, text=True, timeout=60
    )
    return done.returncode, done.stderr


class TestWithoutAHub:
    def test_a_key_is_made_listed_and_revoked(self, home: Path) -> None:
        made = ended(home, *CREATE)
        assert made.code == 0 and SECRET.fullmatch(made.out)
        [id_] = stored(home)
        assert made.err == f"{id_} was created, role read, label kitchen tablet; its secret, shown only once:\n"
        listed = ended(home, "key", "list")
        assert (listed.code, listed.err) == (0, "")
        head, row = listed.out.splitlines()
        assert head.split() == ["id", "role", "created", "label"]
        assert re.fullmatch(rf"{id_}  read  20\d\d-\d\d-\d\dT[\d:.]+Z  kitchen tablet", row)
        revoked = ended(home, "key", "revoke", id_)
        assert (revoked.code, revoked.out, revoked.err) == (0, f"{id_} is revoked\n", "")
        assert stored(home) == []
        again = ended(home, "key", "revoke", id_)
        assert (again.code, again.out, again.err) == (67, "", f"lares: key '{id_}' not found\n")
        none = ended(home, "key", "list")
        assert (none.code, none.out, none.err) == (0, "", "the master key is the only key\n")

    @pytest.mark.slow
    def test_a_key_of_a_hook_names_it_and_a_running_hub_warns_without_a_listener(self, home: Path) -> None:
        create = ("key", "create", "--label", "bell", "--role", "hook", "--hook", "bell")
        made = ended(home, *create)
        assert made.code == 0 and SECRET.fullmatch(made.out)
        assert "was created, role hook bell, label bell; its secret" in made.err and "warning" not in made.err
        assert "  hook bell  20" in ended(home, "key", "list").out
        with lares(home, "run") as running:
            assert status_of(running.url(), made.out.strip(), path="/hooks/bell") == 404
            assert status_of(running.url(), made.out.strip()) == 403
            warned = ended(home, *create)
        assert SECRET.fullmatch(warned.out) and "\nwarning: nothing listens to the hook 'bell' yet; " in warned.err

    @pytest.mark.slow
    def test_a_locked_out_owner_gets_access_with_one_command(self, home: Path) -> None:
        with lares(home, "run") as running:
            running.url()
            old = first_key(home)
        made = ended(home, "key", "reset-master")
        assert made.code == 0 and SECRET.fullmatch(made.out)
        assert KeyToken.parse(made.out.strip()) and made.out.startswith("lrs_master_")
        assert made.err.startswith("the old master key no longer works; this is the new one, shown only once")
        assert "first-key" not in names(home / "data"), "a key without a permission was printed"
        with lares(home, "run") as running:
            assert status_of(running.url(), made.out.strip()) == 200
            assert status_of(running.url(), old) == 401
            assert "the master key was created" not in running.stop().err

    @pytest.mark.slow
    @pytest.mark.parametrize("words", [CREATE, ("key", "reset-master")], ids=["create", "reset-master"])
    @pytest.mark.parametrize("output", [">&-", "1</dev/null", "| true", ">/dev/full"])
    def test_a_secret_is_not_created_if_it_cannot_be_shown(
        self, home: Path, words: tuple[str, ...], output: str
    ) -> None:
        ended(home, "key", "reset-master")
        before = read_document(home / "data").values
        code, errors = in_shell(home, words, output)
        assert code == os.EX_IOERR
        assert re.fullmatch(r"lares: standard output cannot be written: [\w ]+; nothing was changed\n", errors)
        assert read_document(home / "data").values == before

    @pytest.mark.slow
    @pytest.mark.parametrize("options", [(), ("-u",)], ids=["buffered", "unbuffered"])
    def test_if_a_secret_is_lost_the_remedy_is_named(self, home: Path, options: tuple[str, ...]) -> None:
        reader, output = os.pipe()
        os.set_blocking(output, False)
        with suppress(BlockingIOError):
            while os.write(output, bytes(4096)):
                pass
        try:
            made, reset = (end_with(home, words, output, *options) for words in (CREATE, ("key", "reset-master")))
        finally:
            os.close(reader)
            os.close(output)
        [id_] = {*stored(home)} - {"master"}
        reason = r"\nlares: standard output cannot be written: [\w ]+; the secret is lost: run "
        assert made[0] == reset[0] == os.EX_IOERR
        assert re.search(rf"{reason}`lares key revoke {id_}`, and create another key\n$", made[1])
        assert re.search(rf"{reason}`lares key reset-master` again\n$", reset[1])

    @pytest.mark.slow
    def test_without_a_data_directory_it_is_66(self, tmp_path: Path) -> None:
        result = ended(box(tmp_path), "key", "list")
        before = names(tmp_path / "config")
        assert (result.code, result.out) == (66, "")
        assert result.err == f"lares: there is no data directory {tmp_path}/data; `lares run` creates it\n"
        assert not (tmp_path / "data").exists()
        for words in (["list"], ["revoke", "x"]):
            result = ended(tmp_path, "key", *words, "--data-dir", str(tmp_path / "config"))
            assert result.code == 66 and "there is no store in" in result.err and names(tmp_path / "config") == before

    def test_a_faulty_configuration_affects_only_commands_that_need_it(self, home: Path) -> None:
        box(home, "nonsense = true\n")
        assert ended(home, *CREATE).code == 0
        result = ended(home, "key", "reset-master")
        assert result.code == 78 and "nonsense is not a key of Lares" in result.err

    @pytest.mark.slow
    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
    def test_files_written_by_root_belong_to_the_owner_of_the_data(self, open_folder: Path) -> None:
        home = box(open_folder)
        (home / "data").mkdir(mode=0o700)
        shutil.chown(home / "data", 12345, 54321)
        assert ended(home, *CREATE).code == 0
        assert ended(home, "key", "reset-master").code == 0
        owners = {(file.stat().st_uid, file.stat().st_gid) for file in (home / "data").iterdir()}
        assert owners == {(12345, 54321)}


CONFIGURED = "a-master-key-that-is-configured"


@pytest.mark.slow
def test_a_configured_master_key_must_be_changed_in_the_configuration(home: Path) -> None:
    """The command uses the environment of the running hub, not its own environment."""
    variables = {"LARES_MASTER_KEY": CONFIGURED}
    sentence = "lares: the master key was not replaced; it comes from LARES_MASTER_KEY, so change it there\n"
    alone = ended(home, "key", "reset-master", **variables)
    assert (alone.code, alone.out, alone.err, stored(home)) == (64, "", sentence, [])
    with lares(home, "run", variables=variables) as running:
        url = running.url()
        asked = ended(home, "key", "reset-master")
        assert (asked.code, asked.out, asked.err) == (64, "", sentence)
        assert status_of(url, CONFIGURED) == 200


class TestWithAHub:
    @pytest.fixture
    def hub(self, home: Path) -> Iterator[Running]:
        with lares(home, "run") as running:
            running.url()
            yield running

    def test_keys_are_made_listed_and_revoked_with_effect_at_once(self, home: Path, hub: Running) -> None:
        made = ended(home, *CREATE)
        token = made.out.strip()
        assert made.code == 0 and SECRET.fullmatch(made.out)
        assert status_of(hub.url(), token) == 200
        id_ = f"key_{token.split('_')[1]}"
        assert id_ in ended(home, "key", "list").out
        assert ended(home, "key", "revoke", id_).out == f"{id_} is revoked\n"
        assert status_of(hub.url(), token) == 401
        gone = ended(home, "key", "revoke", id_)
        assert (gone.code, gone.err) == (67, f"lares: key '{id_}' not found\n")
        assert f"keys: {id_} was created (role read, label kitchen tablet)\n" in hub.err
        assert f"keys: {id_} was revoked\n" in hub.err
        assert token[-43:] not in hub.stop().err

    @pytest.mark.slow
    def test_the_master_key_is_replaced_at_once_and_after_a_restart(self, home: Path, hub: Running) -> None:
        old = first_key(home)
        made = ended(home, "key", "reset-master")
        new = made.out.strip()
        assert made.code == 0 and new.startswith("lrs_master_") and new != old
        assert (status_of(hub.url(), old), status_of(hub.url(), new)) == (401, 200)
        assert "first-key" not in names(home / "data")
        again = ended(home, "key", "reset-master").out.strip()
        assert (status_of(hub.url(), new), status_of(hub.url(), again)) == (401, 200)
        hub.stop()
        with lares(home, "run") as running:
            assert (status_of(running.url(), new), status_of(running.url(), again)) == (401, 200)

    @pytest.mark.slow
    def test_a_faulty_configuration_does_not_lock_the_owner_out(self, home: Path, hub: Running) -> None:
        box(home, "nonsense = true\n")
        assert ended(home, "key", "reset-master").code == 0

    def test_only_the_owner_can_use_the_socket_which_ends_with_the_hub(self, home: Path, hub: Running) -> None:
        file = home / "data" / "control.sock"
        assert stat.S_ISSOCK(file.stat().st_mode) and stat.S_IMODE(file.stat().st_mode) == 0o600
        hub.stop()
        assert not file.exists()

    @pytest.mark.slow
    def test_a_stale_socket_is_replaced(self, home: Path, hub: Running) -> None:
        hub.process.kill()
        hub.process.wait()
        assert (home / "data" / "control.sock").exists()
        assert ended(home, "key", "list").code == 0
        with lares(home, "run") as running:
            running.url()
            assert ended(home, "key", "list").code == 0
            assert "cannot reach" not in running.stop().err

    @pytest.mark.slow
    def test_a_command_waits_for_a_hub_that_is_starting(self, home: Path) -> None:
        with lares(home, "run") as running:
            until((home / "data" / "lock").exists, "the lock")
            assert ended(home, *CREATE).code == 0
            running.url()


class TestBothWays:
    """Tests that run with the default data directory and with another one."""

    @pytest.mark.slow
    def test_a_path_that_is_too_long_for_a_socket_works(self, tmp_path: Path) -> None:
        folder = tmp_path / ("long-" * 20) / ("longer-" * 20)
        folder.mkdir(parents=True)
        with lares(box(folder), "run") as running:
            url = running.url()
            token = ended(folder, *CREATE).out.strip()
            assert status_of(url, token) == 200
            assert stat.S_IMODE((folder / "data" / "control.sock").stat().st_mode) == 0o600
            assert "cannot reach" not in running.stop().err
        assert not (folder / "data" / "control.sock").exists()

    def test_an_obstacle_in_place_of_the_socket_is_reported_and_kept(self, home: Path) -> None:
        (home / "data" / "control.sock").write_text("mine")
        with lares(home, "run") as running:
            assert status_of(running.url(), None) == 401
            result = running.stop().err
        assert f"commands cannot reach this hub: {home}/data/control.sock: is not a socket; remove it and" in result
        assert (home / "data" / "control.sock").read_text() == "mine"

    @pytest.mark.slow
    def test_a_hub_without_an_answer_is_reported(
        self, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(home)
        monkeypatch.delenv("LARES_DATA_DIR", raising=False)
        lock = DirectoryLock(home / "data")
        try:
            assert main(["key", "list"]) == 75
        finally:
            lock.release()
        assert capsys.readouterr().err == (
            f"lares: the data directory {home}/data is in use by another hub, process {os.getpid()}, "
            "but that hub does not answer; try again\n"
        )

    def test_a_hub_that_ends_before_its_answer_is_not_asked_again(
        self, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(home)
        monkeypatch.delenv("LARES_DATA_DIR", raising=False)
        lock = DirectoryLock(home / "data")
        asked = 0

        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal asked
            asked += 1
            await reader.readuntil(b"\r\n\r\n")
            writer.close()

        async def create() -> Ended:
            server = await asyncio.start_unix_server(hang_up, home / "data" / "control.sock")
            async with server:
                return await asyncio.to_thread(ended, home, *CREATE)

        try:
            result = asyncio.run(create())
        finally:
            lock.release()
        assert (result.code, asked) == (69, 1)
        assert result.err == "lares: the hub ended without an answer; `lares key list` shows the result\n"


SPEAK = """
import os, socket, sys
os.setegid(int(sys.argv[2])), os.seteuid(int(sys.argv[2]))
peer = socket.socket(socket.AF_UNIX)
peer.settimeout(20)
peer.connect(sys.argv[1])
try:
    peer.sendall(b"GET /auth/keys HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n")
    print(peer.makefile("rb").read().decode().splitlines()[-1], end="")
except (ConnectionError, IndexError):
    pass
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_is_rejected_even_with_access_to_the_socket(open_folder: Path) -> None:
    with lares(box(open_folder), "run") as running:
        running.url()
        file = open_folder / "data" / "control.sock"
        file.parent.chmod(0o755)
        file.chmod(0o666)
        for user, answer in ((0, "[]"), (12345, "")):
            result = subprocess.run(
                [sys.executable, "-c", SPEAK, str(file), str(user)],
                env=environment(),
                capture_output=True,
                text=True,
                timeout=30,
            )
            assert (result.stdout, result.stderr) == (answer, "")


def test_the_socket_serves_the_api_without_a_key_and_the_port_does_not(home: Path) -> None:
    with lares(home, "run") as running:
        url = running.url()
        assert hub_client.ask(home / "data", HubRequest(path="/rooms")) == []
        for request, sentence in (
            (HubRequest(path="/nowhere"), "this path does not exist"),
            (HubRequest(method="POST", path="/auth/keys", body=[]), "must be a JSON object"),
            (HubRequest(path="/diagnostics/log", query={"limit": 2001}), "from 1 to 2000"),
        ):
            with pytest.raises(StartFailed, match=sentence):
                hub_client.ask(home / "data", request)
        assert status_of(url, first_key(home), path="/auth/keys") == 200
        assert status_of(url, None, path="/auth/keys") == 401
        refused = urllib.request.Request(f"{url}/auth/master", method="POST")
        refused.add_header("Authorization", f"Bearer {hub_client.ask(home / 'data', ADMIN)['key']}")
        with pytest.raises(urllib.error.HTTPError) as answer:
            urllib.request.urlopen(refused, timeout=30)
        with answer.value:
            assert answer.value.code == 400 and b"lares key reset-master" in answer.value.read()


ADMIN = HubRequest(method="POST", path="/auth/keys", body={"label": "x", "role": "admin"})


@pytest.mark.slow
def test_silent_clients_do_not_block_others(home: Path) -> None:
    with lares(home, "run") as running:
        running.url()
        silent = []
        for number in range(MAX_CONTROL_CONNECTIONS + 1):
            silent.append(socket.socket(socket.AF_UNIX))
            silent[-1].connect(str(home / "data" / "control.sock"))
            silent[-1].sendall(b"GET" if number % 2 else b"")
        assert ended(home, "key", "list").code == 0
        for each in silent:
            each.close()
