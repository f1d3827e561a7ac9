"""Runs commands of the shell in other processes or in this process, and reads their output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from appliance.cli.main import main
from tests.fakes.forked import Forked
from tests.fakes.process import PYTHONPATH, start

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 30.0
"""A test fails after waiting for this number of seconds."""
KEY = "a-key-from-somewhere-that-is-long"
WITH_KEY = {"LARES_MASTER_KEY": KEY}
LOOPBACK = '[api]\nbind_address = "127.0.0.1:0"\n'
NOTHING: Mapping[str, str] = {}
ANY_TRACE = re.compile(r"Traceback|Exception ignored|Logging error|Warning:|was never (awaited|retrieved)")


def environment(**more: str) -> dict[str, str]:
    ours = ("LARES_", "CONFIGURATION_DIRECTORY", "STATE_DIRECTORY", "JOURNAL_STREAM", "PYTHON")
    bare = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**bare, "PYTHONPATH": PYTHONPATH, "TZ": "UTC", **more}


def until(happened: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if result := happened():
            return result
        time.sleep(0.005)
    raise AssertionError(f"waited in vain for {what}")


@dataclass(frozen=True, kw_only=True)
class Ended:
    code: int
    out: str
    err: str


class Running:
    """A running command. The output goes to files, so that the command never waits for a reader."""

    def __init__(self, process: subprocess.Popen[bytes] | Forked, out: Path, err: Path) -> None:
        self.process = process
        self._out = out
        self._err = err

    @property
    def out(self) -> str:
        return self._out.read_text(errors="replace")

    @property
    def err(self) -> str:
        return self._err.read_text(errors="replace")

    def says(self, pattern: str) -> re.Match[str]:
        """Wait until one of the two outputs contains this text."""
        until(lambda: re.search(pattern, self.out + self.err) or self.process.poll() is not None, pattern)
        found = re.search(pattern, self.out + self.err)
        assert found is not None, f"it ended ({self.process.returncode}) without {pattern!r}: {self.out}{self.err}"
        return found

    def url(self) -> str:
        """Return the hub's address once it listens."""
        return self.says(r"listening at (http://[^\s\"]+)")[1]

    def send(self, number: signal.Signals) -> None:
        """Send the signal to this process alone."""
        self.process.send_signal(number)

    def end(self) -> Ended:
        """Wait for the end, and check that no traceback was printed."""
        code = self.process.wait(PATIENCE)
        assert not ANY_TRACE.search(self.err), self.err
        return Ended(code=code, out=self.out, err=self.err)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> Ended:
        """Send the signal, and check that the command ends in order."""
        self.send(number)
        ended = self.end()
        assert ended.code == 0, ended
        return ended


@contextlib.contextmanager
def lares(
    folder: Path,
    *arguments: str,
    variables: Mapping[str, str] = NOTHING,
    stdout: int | None = None,
    stderr: int | None = None,
) -> Iterator[Running]:
    """Run the command in the folder with these environment variables. Kill the process at the end."""
    number = len(list(folder.glob("*.out")))
    out, err = folder / f"{number}.out", folder / f"{number}.err"
    with out.open("wb") as done, err.open("wb") as errors:
        process = start(
            arguments,
            cwd=folder,
            env=environment(**variables),
            stdout=done if stdout is None else stdout,
            stderr=errors if stderr is None else stderr,
        )
    try:
        yield Running(process, out, err)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def ended(folder: Path, *arguments: str, **variables: str) -> Ended:
    with lares(folder, *arguments, variables=variables) as running:
        return running.end()


async def asked(folder: Path, *arguments: str) -> Ended:
    """Run the command to its end. Meanwhile, the event loop of the test continues."""
    return await asyncio.to_thread(ended, folder, *arguments)


def box(folder: Path, text: str = LOOPBACK) -> Path:
    (folder / "config").mkdir(parents=True, exist_ok=True)
    (folder / "config" / "default.toml").write_text(text)
    return folder


def status_of(url: str, token: str | None, *, path: str = "/devices") -> int:
    """Return the status of a GET with this token."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, headers=headers), timeout=PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def connection(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), PATIENCE)


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


class Command:
    """Runs commands on a box in this process, and returns their output and exit codes."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        for name in [each for each in os.environ if each.startswith(("LARES_", "STATE_D", "CONFIGURATION_D"))]:
            monkeypatch.delenv(name)

    def __call__(self, folder: Path, *arguments: str) -> tuple[int, str]:
        """Return the exit code and all output."""
        self._monkeypatch.chdir(folder)
        code = main(arguments)
        result = self._capsys.readouterr()
        assert not ANY_TRACE.search(result.out + result.err)
        return code, result.out + result.err
