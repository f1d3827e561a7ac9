"""No text in a file, a file name, a script, or an answer can control the terminal, hide a line, or forge a line."""

from __future__ import annotations

import ast
import contextlib
import http.client
import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from appliance.cli.arguments import build_parser
from appliance.cli.help import subcommands
from appliance.cli.log_output import JsonLines
from appliance.cli.main import main
from appliance.cli.process.control_socket import socket_path
from appliance.history.card_lines import encode_changes
from appliance.store.disk import Disk
from appliance.store.lock import DirectoryLock
from appliance.store.month_files import MonthFiles
from tests.cli.commands import LOOPBACK
from tests.cli.homes import entries, pack

pytestmark = pytest.mark.slow

STEERS = "\x1b[31m\x07\x9b2J\r\x7f\u202e\u2066\u200b\u2028\u3164\u034f\U000e0041"
EVIL = f"x{STEERS}\nforged"
AT = "2026-11-22T18:00:00.000Z"
CLI = Path(__file__).parents[2] / "appliance" / "cli"

AUTOMATION = """
return {
  id = "a", name = "A", trigger = { type = "cron", expression = "0 0 * * * * *" },
  execute = function(ctx) ctx:log("info", %s) error(%s) end,
}
"""

STATUS = {
    "version": EVIL,
    "uptime_secs": 1,
    "memory_bytes": 1,
    "timezone": "UTC",
    "safe": EVIL,
    "config": [EVIL],
    "waiting_for": [EVIL],
    "card": {"today_bytes": 1, "bytes_written": 1, "since": AT, "failure": EVIL},
    "adapters": [{"name": EVIL, "status": "degraded", "last_success": None, "message": EVIL}],
    "devices": {"total": 1, "offline": [{"id": EVIL, "name": "lamp", "state": EVIL, "since": AT}]},
    "automations": [
        {"id": EVIL, "is_enabled": True, "next_fire": None, "last": {"status": EVIL, "at": AT, "error": EVIL}}
    ],
    "executions": [{"kind": EVIL, "of": EVIL, "started_at": AT, "doing": EVIL, "cpu_secs": 1.0}],
    "faults": [{"at": AT, "part": EVIL, "message": EVIL}],
}
WHY = {"kind": EVIL, "id": EVIL, "timezone": "UTC", "summary": [EVIL], "decisions": [{"at": AT, "sentence": EVIL}]}
ENTRY = {"at": AT, "level": "error", "part": EVIL, "message": EVIL, "fields": {EVIL: EVIL}}
RELOAD = {
    "target": "adapters",
    "loaded_count": 1,
    "errors": [{"file": EVIL, "line": 1, "message": EVIL}],
    "sections": {EVIL: "started"},
}
KEY = {"id": EVIL, "role": EVIL, "created_at": EVIL, "label": EVIL}

ANSWERED: dict[str, Any] = {
    "status": STATUS,
    "why a": WHY,
    "log": {"entries": [ENTRY], "last": 1, "timezone": "UTC"},
    "notify a b": {"result": {"status": EVIL}},
    "reload": {"reloads": [RELOAD], "config": [EVIL], "safe": EVIL},
    "status --json": STATUS,
    "why a --json": WHY,
    "log --json": {"entries": [ENTRY], "last": 1},  # as a hub of version 0.2.0 answers
    "key list": [KEY],
    "key create --label a --role read": {**KEY, "key": "lk"},
    "key revoke a": None,
    "key reset-master": {"key": "lk"},
}
"""The answers of a running hub by command."""

LOCAL = (
    "check",
    "simulate",
    "simulate --run",
    "simulate --json",
    "simulate --events EVIL",
    "simulate --from EVIL",
    "doctor",
    "devices",
    "devices EVIL",
    "import homeassistant EVIL",
    "clock trust",
    "key list",
    "key revoke EVIL",
    "key create --role read --label EVIL",
    "history export",
    "history export --json",
    "history export --start EVIL",
    "backup OUT",
    "backup EVIL/no/where",
    "restore EVIL",
    "restore ARCHIVE",
    "upgrade EVIL",
    "upgrade --rollback",
    "init OUT",
    "init --adapter EVIL",
    "discover --seconds 0.1",
    "discover --seconds EVIL",
    "try-adapter EVIL",
    "try-adapter shelly --set EVIL",
    "try-adapter shelly --replay EVIL",
    "status",
    "why EVIL",
    "log",
    "notify EVIL EVIL",
    "demo --config EVIL",
    "help EVIL",
    "run EVIL",
    "EVIL",
    "completion EVIL",
)
"""Commands that need no hub. A word in capitals is replaced with a file or a text of this test."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Create a home whose names and files contain terminal control sequences."""
    home = tmp_path / EVIL
    (home / "config" / "automations").mkdir(parents=True)
    (home / "data").mkdir(mode=0o700)
    (home / "config" / "default.toml").write_text(LOOPBACK)
    text = json.dumps(EVIL, ensure_ascii=False).replace("\\u001b", "\x1b").replace("\\u007f", "\x7f")
    text = text.replace("\\u0007", "\\a")
    (home / "config" / "automations" / f"{EVIL}.lua").write_text(AUTOMATION % (text, text))
    [(month, line)] = encode_changes(EVIL, EVIL, [(1_794_355_200_000, EVIL)])
    MonthFiles(Disk(home / "data")).append(month, [line])
    return home


def is_clean(text: str) -> bool:
    """Return whether the output contains no control characters, no hidden characters, and only lines from Lares."""
    return not set(text) & set(STEERS) - set("[31m2J") and "forged" not in [line[:6] for line in text.split("\n")]


def output_of(capfd: pytest.CaptureFixture[str], home: Path, *words: str) -> str:
    """Return the whole output of the command in this home."""
    common = ["--config", str(home / "config" / "default.toml"), "--data-dir", str(home / "data")]
    root = logging.getLogger()
    level, handlers, root.handlers = root.level, root.handlers, []
    try:
        with contextlib.suppress(SystemExit):
            main([*([] if "--config" in words or words[0] == "completion" else common), *words])
    finally:
        root.handlers = handlers
        root.setLevel(level)
    captured = capfd.readouterr()
    return captured.out + captured.err


@contextlib.contextmanager
def hub_that_answers(home: Path, reply: Any, status: int = 200) -> Iterator[None]:
    """Answer each request on the control socket of the home with this body."""
    body = b"" if reply is None else json.dumps(reply).encode()
    head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()
    lock = DirectoryLock(home / "data")
    with socket.socket(socket.AF_UNIX) as listener:
        with socket_path(home / "data") as path:
            listener.bind(path)
        listener.listen()

        def serve() -> None:
            with contextlib.suppress(OSError):  # the listener was closed
                while True:
                    client, _ = listener.accept()
                    with client, client.makefile("rb") as asked:
                        lines = [each.lower() for each in takewhile(bytes.strip, asked)]
                        asked.read(sum(int(each[16:]) for each in lines if each.startswith(b"content-length: ")))
                        client.sendall(head + body)

        server = threading.Thread(target=serve)
        server.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            server.join()
            lock.release()


@pytest.mark.parametrize("command", ANSWERED)
def test_answers_of_a_hub_are_shown_harmlessly(command: str, home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with hub_that_answers(home, ANSWERED[command]):
        text = output_of(capfd, home, *command.split())
    assert is_clean(text) and text.strip(), repr(text)


@pytest.mark.parametrize("command", ANSWERED)
def test_refusals_of_a_hub_are_shown_harmlessly(command: str, home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with hub_that_answers(home, {"error": EVIL, "code": "invalid_value"}, 400):
        text = output_of(capfd, home, *command.split())
    assert is_clean(text) and r"x\x1b[31m" in text and r"\nforged" in text


@pytest.mark.parametrize("command", LOCAL)
def test_names_and_contents_of_files_are_shown_harmlessly(
    command: str, home: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out, archive = tmp_path / f"out{EVIL}", tmp_path / f"a{EVIL}.tar.gz"
    pack(archive, entries(state={f"room/{EVIL}": {"name": EVIL}}))
    named = {"EVIL": EVIL, "OUT": str(out), "ARCHIVE": str(archive)}
    words = [named.get(word, word.replace("EVIL", str(home))) for word in command.split()]
    text = output_of(capfd, home, *words)
    assert is_clean(text) and text.strip(), repr(text)


def test_a_crash_shows_no_hostile_text(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError(STEERS)

    monkeypatch.setattr(http.client.HTTPConnection, "request", fail)
    with hub_that_answers(home, STATUS):
        text = output_of(capfd, home, "status")
    assert is_clean(text) and "please report it" in text and "Traceback" in text


def test_every_command_is_tested() -> None:
    tried = {" ".join(each.split()[:2]) for each in (*ANSWERED, *LOCAL)} | {each.split()[0] for each in LOCAL}

    def paths(parser: Any, path: str = "") -> list[str]:
        children = subcommands(parser)
        found = [each for name, child in children.items() for each in paths(child, f"{path} {name}".strip())]
        return found or [path]

    assert set(paths(build_parser())) <= tried | {each.split()[0] for each in ANSWERED}


def test_only_the_terminal_module_prints() -> None:
    is_own: Callable[[ast.AST], bool] = lambda node: (  # noqa: E731
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    )
    printing = [file.name for file in CLI.glob("*.py") if any(map(is_own, ast.walk(ast.parse(file.read_text()))))]
    assert sorted(printing) == ["terminal.py"]


def test_a_json_line_has_no_control_characters_and_the_same_content() -> None:
    record = logging.LogRecord("hub", logging.INFO, "", 1, f"grün {EVIL}", None, None)
    line = JsonLines().format(record)
    assert is_clean(line) and json.loads(line)["message"] == f"grün {EVIL}"
