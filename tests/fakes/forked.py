"""Starts `lares` and Lua workers without import time, by forking processes that have already imported all modules.

A forked process does not import modules, so tests of imports start an interpreter instead.
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
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, Self

ROOT = Path(__file__).parents[2]
MAX_REQUEST_BYTES = 1 << 17


class Forked:
    """A running `lares`, with the methods of `subprocess.Popen` that the tests use."""

    def __init__(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: Any, stderr: Any
    ) -> None:
        """Start `lares` without input. `stdout` and `stderr` are files or descriptors."""
        outs = [each if isinstance(each, int) else each.fileno() for each in (stdout, stderr)]
        self._start(HUBS, arguments, {1: outs[0], 2: outs[1]}, cwd=str(cwd), env={**env})

    def _start(self, kind: str, arguments: Sequence[str], descriptors: Mapping[int, int], **more: Any) -> None:
        """Fork the server of this kind. The process gets these descriptors under these numbers."""
        self.args = arguments
        self.returncode: int | None = None
        self._reading = threading.Lock()
        reading, writing = os.pipe()
        request = json.dumps({"arguments": [*arguments], "numbers": [*descriptors], **more}).encode()
        socket.send_fds(_server(kind).socket, [request], [*descriptors.values(), writing])
        os.close(writing)
        self._status = reading
        self.pid = self._read_number()

    def __enter__(self) -> Self:
        """Wait for the process when the context ends."""
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()

    def poll(self) -> int | None:
        """Return the exit code, which is negative for a signal. Return None while the process runs."""
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once the process has ended. Raise `subprocess.TimeoutExpired` after `timeout`
        seconds."""
        code = self._wait(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal if the process runs. The exit code may arrive later."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def __del__(self) -> None:
        os.close(self._status)

    def _wait(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            with self._reading:
                if self.returncode is None:
                    self.returncode = os.waitstatus_to_exitcode(self._read_number())
        return self.returncode

    def _read_number(self) -> int:
        digits = b""
        while (byte := os.read(self._status, 1)) not in (b"\n", b""):
            digits += byte
        return int(digits)


class ForkedWorker(Forked):
    """A running Lua worker."""

    def __init__(self, command: Sequence[str], *, stdin: int, **_: Any) -> None:
        """Start a worker with the command for an interpreter. The socket `stdin` becomes descriptor 0."""
        arguments = command[command.index("-c") + 2 :]
        self._start(WORKERS, arguments[2:7], {0: stdin})


class _Server:
    """The process from which all other processes are forked. The server ends when its socket closes."""

    def __init__(self, kind: str) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        descriptors = [theirs.fileno()]
        if kind == HUBS:  # the Lua workers of hubs are also forked
            descriptors.append(_SERVERS[WORKERS].socket.fileno())
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.fakes.forked", kind, *map(str, descriptors)],
                cwd=ROOT,
                pass_fds=descriptors,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )


_SERVERS: dict[str, Any] = {}
_STARTING = threading.Lock()


def _server(kind: str) -> Any:
    with _STARTING:
        for each in (WORKERS, HUBS) if kind == HUBS else (kind,):
            if each not in _SERVERS:
                _SERVERS[each] = _Server(each)
        return _SERVERS[kind]


class ForkingPopen(subprocess.Popen[bytes]):
    """Forks Lua workers, and starts all other programs."""

    def __new__(cls, args: Any, *_: Any, **options: Any) -> Any:
        is_worker = "lua_worker.worker_main" in str(args)
        return ForkedWorker(args, **options) if is_worker else super().__new__(cls)


def fork_workers() -> None:
    """Make the hubs of this process fork their Lua workers."""
    vars(subprocess)["Popen"] = ForkingPopen


def close() -> None:
    """End the forking processes, at the end of the tests."""
    while _SERVERS:
        server = _SERVERS.popitem()[1]
        server.socket.close()
        server.process.terminate()  # a hub that is still running has the socket too
        server.process.wait()


def _serve(requests: socket.socket) -> dict[str, Any]:
    """Fork for each request. In the forked process, return the request. In the server, never return."""
    signal.pthread_sigmask(
        signal.SIG_BLOCK, [signal.SIGINT]
    )  # in forked processes, the signal stays blocked until they can handle it
    ended, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    statuses: dict[int, int] = {}
    while True:
        ready = select.select([requests.fileno(), ended], [], [])[0]
        if ended in ready:
            os.read(ended, 4096)
            _report_ends(statuses)
        if requests.fileno() not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, 3)
        if not data:
            os._exit(0)
        *given, status = descriptors
        if pid := os.fork():
            for each in given:
                os.close(each)
            with contextlib.suppress(BrokenPipeError):  # the process that asked was killed
                os.write(status, b"%d\n" % pid)
            statuses[pid] = status
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        requests.close()
        for each in (ended, wakeup, status, *statuses.values()):
            os.close(each)
        request: dict[str, Any] = json.loads(data)
        for number, descriptor in zip(request["numbers"], given, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
        return request


def _report_ends(statuses: dict[int, int]) -> None:
    while statuses and (found := os.waitpid(-1, os.WNOHANG))[0]:
        if (status := statuses.pop(found[0], None)) is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(status, b"%d\n" % found[1])
            os.close(status)


def _run_hub(requests: socket.socket, workers: socket.socket) -> NoReturn:
    from appliance.cli.main import main

    _SERVERS[WORKERS] = SimpleNamespace(socket=workers)
    fork_workers()
    for package in ("appliance.cli", "appliance.adapters.elgato_lights", "appliance.adapters.roku_tv"):
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
            importlib.import_module(f"{package}.{module.name}")
    for name in ("aiohttp", "astral.sun", "tests.fakes.keys", "watchfiles", "aiomqtt"):
        importlib.import_module(name)
    gc.freeze()
    request = _serve(requests)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - as Python opens them
    sys.stderr = open(2, "w", 1, closefd=False, errors="backslashreplace")  # noqa: SIM115
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments: list[str] = request["arguments"]
    sys.argv = [str(ROOT / "appliance" / "__main__.py"), *arguments]
    sys.orig_argv = [sys.executable, "-m", "appliance", *arguments]
    _end(main, arguments)


def _run_worker(requests: socket.socket) -> NoReturn:
    from appliance.lua_worker.lua_state import prelude
    from appliance.lua_worker.worker_main import main

    prelude()
    request = _serve(requests)
    os.environ.clear()
    os.setsid()
    main([str(os.getppid()), *request["arguments"]])
    raise AssertionError("a worker does not return")


def _end(run: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> NoReturn:
    """Run the function, and exit like Python. However, do not clear the modules, because that would copy the
    shared memory."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        code: Any = run(arguments)
    except SystemExit as ended:
        code = ended.code
    except KeyboardInterrupt:
        code = 130
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    if isinstance(code, int):
        os._exit(code)
    sys.exit(code)


HUBS, WORKERS = "hubs", "workers"
_RUN: dict[str, Callable[..., NoReturn]] = {HUBS: _run_hub, WORKERS: _run_worker}

if __name__ == "__main__":
    _RUN[sys.argv[1]](*(socket.socket(fileno=int(each)) for each in sys.argv[2:]))
