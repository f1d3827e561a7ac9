"""Runs a hub as a separate process. Tests can kill the process, and its card can be faulty."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.fakes import contract_recorder
from tests.fakes.forked import Forked

ROOT = Path(__file__).parents[2]
PYTHONPATH = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("COVERAGE_LIBRARY")])])
"""The module path of a process, including the library that measures branches for `build.py test --coverage`."""

KEY = "master-key-of-the-process"
_LISTENING = re.compile(r"listening at (http://\S+)")
_PATIENCE = 40.0


@dataclass(slots=True, kw_only=True)
class Process:
    """A hub that listens at `url`."""

    popen: subprocess.Popen[bytes] | Forked
    log: Path
    url: str
    session: aiohttp.ClientSession

    async def ask(self, method: str, path: str, json: Any = None) -> tuple[int, Any]:
        """Return the status and the body of a response. The body may be None."""
        async with self.session.request(method, self.url + path, json=json) as response:
            contract_recorder.judge(method, path, response.status, response.headers, await response.read())
            return response.status, await response.json() if await response.read() else None

    async def get(self, path: str) -> Any:
        status, body = await self.ask("GET", path)
        assert status == 200, (path, status, body)
        return body

    async def text(self, path: str) -> str:
        async with self.session.get(self.url + path) as response:
            return await response.text()

    async def post(self, path: str, **fields: Any) -> int:
        return (await self.ask("POST", path, fields))[0]

    async def status_for(self, key: str, path: str = "/rooms") -> int:
        """Return the status of a GET with this key."""
        async with self.session.get(self.url + path, headers={"Authorization": f"Bearer {key}"}) as response:
            return response.status

    async def store(self) -> dict[str, Any]:
        figures: dict[str, Any] = (await self.get("/diagnostics"))["store"]
        return figures

    async def ready(self) -> None:
        """Wait until the hub has polled all adapters."""
        async with asyncio.timeout(_PATIENCE):
            while (await self.ask("GET", "/ready"))[0] != 200:  # noqa: ASYNC110 - asked over HTTP
                await asyncio.sleep(0.01)

    async def kill(self) -> None:
        """Send SIGKILL, and wait until the process ends."""
        self.popen.kill()
        await asyncio.to_thread(self.popen.wait, _PATIENCE)

    async def stop(self) -> int:
        """Stop the hub, and return its exit code."""
        self.popen.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self.popen.wait, _PATIENCE)


def configure(folder: Path, adapters: str = "") -> None:
    """Write a configuration for a hub in this folder, on a free port of loopback."""
    file = folder / "config" / "default.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'[api]\nbind_address = "127.0.0.1:0"\n{adapters}')


def light_section(url: str) -> str:
    """Return the section of a light at this address."""
    return f'[adapters.elgato_lights]\nenabled = true\nbase_url = "{url}"\npoll_interval_secs = 1\n'


def spawn(
    folder: Path,
    log: Path,
    extra: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    max_files: int | None = None,
    prefix: Sequence[str] = (),
) -> subprocess.Popen[bytes] | Forked:
    """Start `lares run` in the folder. `prefix` is put before the command. The output goes to the log file.

    The process may open at most `max_files` files.
    """
    environment = {**os.environ, "LARES_MASTER_KEY": KEY, "PYTHONPATH": PYTHONPATH, **(extra or {})}
    with log.open("wb") as stream:
        if not prefix and max_files is None:
            return start(["run", *arguments], cwd=folder, env=environment, stdout=stream, stderr=stream)
        command = [*prefix, sys.executable, "-m", "appliance", "run", *arguments]
        if max_files is not None:
            command = ["/bin/sh", "-c", f'ulimit -n {max_files}; exec "$@"', "sh", *command]
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=stream, stderr=stream)


def start(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: Any, stderr: Any
) -> subprocess.Popen[bytes] | Forked:
    """Start `lares`. Fork the process, unless an environment variable requires a new interpreter."""
    if env.keys() & {"LD_PRELOAD", "COVERAGE_LIBRARY"} or env.get("PYTHONPATH") != PYTHONPATH:
        command = [sys.executable, "-m", "appliance", *arguments]
        return subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
    return Forked(arguments, cwd=cwd, env=env, stdout=stdout, stderr=stderr)


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def refused(folder: Path, extra: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Return the exit code and the output of a hub that does not start."""
    log = folder / "refused.log"
    with spawn(folder, log, extra) as popen:
        try:
            code = popen.wait(_PATIENCE)
        finally:
            popen.kill()
    return code, log.read_text()


@asynccontextmanager
async def running(
    folder: Path,
    extra: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    max_files: int | None = None,
    prefix: Sequence[str] = (),
) -> AsyncIterator[Process]:
    """Run a hub with the folder's configuration. Yield once the hub answers. If the hub is still running at the
    end, kill it."""
    log = folder / "hub.log"
    headers = {"Authorization": f"Bearer {KEY}"}
    with spawn(folder, log, extra, arguments, max_files, prefix) as popen:
        try:
            url = await _listening(popen, log)
            async with aiohttp.ClientSession(headers=headers) as session:
                yield Process(popen=popen, log=log, url=url, session=session)
        finally:
            popen.kill()


async def _listening(popen: subprocess.Popen[bytes] | Forked, log: Path) -> str:
    async with asyncio.timeout(_PATIENCE):
        while (url := _url_in(log)) is None:
            assert popen.poll() is None, f"the hub has ended: {_read(log)}"
            await asyncio.sleep(0.005)
    return url


def _url_in(log: Path) -> str | None:
    found = _LISTENING.search(_read(log))
    return None if found is None else found[1]


def _read(log: Path) -> str:
    return log.read_text()
