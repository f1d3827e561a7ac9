"""`lares` without the half second that importing takes: forked from a process that has imported it already.

What a start imports, and when, is not what such a process proves; tests of that start an interpreter.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, Self

ROOT = Path(__file__).parents[2]
MAX_REQUEST_BYTES = 1 << 17


class Forked:
    """A `lares` that runs: what the tests need of `subprocess.Popen`."""

    def __init__(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: Any, stderr: Any
    ) -> None:
        """Start it with nothing to read; `stdout` and `stderr` are files or descriptors."""
        self.args = arguments
        self.returncode: int | None = None
        reading, writing = os.pipe()
        request = json.dumps({"arguments": [*arguments], "cwd": str(cwd), "env": {**env}}).encode()
        outs = [each if isinstance(each, int) else each.fileno() for each in (stdout, stderr)]
        socket.send_fds(_server().socket, [request], [*outs, writing])
        os.close(writing)
        self._status = open(reading, "rb", buffering=0)  # noqa: SIM115, PTH123 - closed when it has ended
        self.pid = int(self._status.readline())

    def __enter__(self) -> Self:
        """For `with`, whose end waits for it."""
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended; `subprocess.TimeoutExpired` after so many seconds."""
        code = self._wait(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to stop."""
        self.send_signal(signal.SIGTERM)

    def _wait(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            self.returncode = os.waitstatus_to_exitcode(int(self._status.readline()))
            self._status.close()
        return self.returncode


class _Server:
    """The process that forks for this one; it ends when its socket closes."""

    def __init__(self) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.fakes.forked", str(theirs.fileno())],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )


@cache
def _server() -> _Server:
    return _Server()


def close() -> None:
    """End the process that forks, at the end of the tests."""
    if _server.cache_info().currsize:
        _server().socket.close()
        _server().process.wait()
        _server.cache_clear()


def _serve(requests: socket.socket) -> Sequence[str]:
    """Fork for each request; returns only in what was forked, with its arguments."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, 3)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not data:
            os._exit(0)
        if not os.fork():
            return _become(json.loads(data), requests, *descriptors)
        for each in descriptors:
            os.close(each)


def _become(request: Any, requests: socket.socket, out: int, err: int, status: int) -> Sequence[str]:
    """Fork again; one tells how the other ended, and the other returns."""
    requests.close()
    if pid := os.fork():
        os.close(out)
        os.close(err)
        os.write(status, b"%d\n" % pid)
        os.write(status, b"%d\n" % os.waitpid(pid, 0)[1])
        os._exit(0)
    for number, descriptor in ((1, out), (2, err)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.close(status)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - as Python opens them
    sys.stderr = open(2, "w", 1, closefd=False, errors="backslashreplace")  # noqa: SIM115
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments: list[str] = request["arguments"]
    sys.argv = [str(ROOT / "appliance" / "__main__.py"), *arguments]
    return arguments


def _end(run: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> NoReturn:
    """Run it and end as Python does, but for emptying the modules, which would copy what the fork shares."""
    try:
        code: Any = run(arguments)
    except SystemExit as ended:
        code = ended.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    if isinstance(code, int):
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    from appliance.cli.main import main

    for package in ("appliance.cli", "appliance.adapters.elgato_lights", "appliance.adapters.roku_tv"):
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
            importlib.import_module(f"{package}.{module.name}")
    for name in ("aiohttp", "astral.sun", "argon2", "watchfiles", "aiomqtt"):
        importlib.import_module(name)
    gc.freeze()
    _end(main, _serve(socket.socket(fileno=int(sys.argv[1]))))
