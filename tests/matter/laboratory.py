"""The processes of the laboratory: the server and the virtual devices. The programs of the laboratory are
downloaded once into a cache."""

from __future__ import annotations

import asyncio
import ctypes.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.dashboard.npm import cache_folder, installed
from tests.fakes.patience import until, until_async
from tests.fakes.programs import known_to_pyenv, need

LAB = Path(__file__).parent / "lab"
SERVER = "python-matter-server[server]==8.1.2"
MATTERBRIDGE = "matterbridge@3.9.4"
DEVICES = ("@matter/main@0.17.9", "@matter/nodejs@0.17.9")
PYTHONS = ("python3.12", "python3.13", "python3.14")

NAMES = ("onoff", "dimmer", "color", "plug", "sensors", "cover", "lock", "thermostat", "switch", "fan", "bridge")
"""The virtual devices, in the order of `devices.mjs`."""

START_SECS = 90.0
"""Seconds within which a process of the laboratory starts on a busy machine."""


def find_server() -> Path:
    """Return the folder of the server's virtual environment, which is created once. Skip the test if the
    environment cannot be created."""
    if ctypes.util.find_library("nl-route-3") is None:
        pytest.skip("the Matter SDK needs libnl-route-3, which is not installed")
    folder = cache_folder() / "matter-server-8.1.2"
    if not folder.exists():
        python = next((each for each in map(_new_enough, (sys.executable, *PYTHONS)) if each), None)
        if python is None:
            pytest.skip("there is no python of 3.12 or later for the Matter server")
        part = folder.with_name(f"{folder.name}.part{os.getpid()}")
        subprocess.run([python, "-m", "venv", part], check=True, timeout=120)
        install = [str(part / "bin" / "python"), "-m", "pip", "install", "--quiet", SERVER]
        done = subprocess.run(install, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            shutil.rmtree(part)
            pytest.skip(f"pip could not fetch {SERVER}: {done.stderr.strip()[-300:]}")
        part.replace(folder)
    return folder


def _new_enough(python: str) -> str | None:
    asked = [python, "-c", "import sys, venv; print(sys.executable if sys.version_info >= (3, 12) else '')"]
    try:
        environment = {**os.environ, "PYENV_VERSION": known_to_pyenv()}
        done = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=False, env=environment)
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def find_devices() -> Path:
    """Return the folder with the `node_modules` of the virtual devices. Skip the test if the folder cannot be
    created."""
    need("node")
    return installed(*DEVICES)


def find_bridge() -> Path:
    """Return the folder of Matterbridge, which needs its own modules. Skip the test if the folder cannot be
    created."""
    folder = cache_folder() / MATTERBRIDGE
    if not folder.exists():
        part = folder.with_name(f"{folder.name}.part{os.getpid()}")
        command = [
            need("npm"),
            "install",
            "-g",
            "--prefix",
            str(part),
            "--ignore-scripts",
            "--no-audit",
            MATTERBRIDGE,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
        if done.returncode != 0:
            shutil.rmtree(part, ignore_errors=True)
            pytest.skip(f"npm could not fetch {MATTERBRIDGE}: {done.stderr.strip()[-300:]}")
        part.replace(folder)
    return folder / "lib" / "node_modules" / "matterbridge"


def check_namespaces() -> None:
    """Skip the test if no namespace with a separate network can be created."""
    tried = [str(LAB / "one-namespace.sh"), "true"]
    need("unshare")
    done = subprocess.run(tried, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        pytest.skip(f"no namespace can be made here: {done.stderr.strip()[-200:]}")


class Laboratory:
    """A server and virtual devices below a folder, inside the namespace of `one-namespace.sh`."""

    def __init__(self, folder: Path, server: Path, modules: Path) -> None:
        self.folder = folder
        self.codes: dict[str, dict[str, Any]] = {}
        self._server = server / "bin" / "python"
        self._running: dict[str, asyncio.subprocess.Process] = {}
        (folder / "node_modules").symlink_to(modules / "node_modules")
        for name in ("devices.mjs", "paa.mjs"):
            shutil.copy(LAB / name, folder / name)
        for name in ("data", "server", "ota"):
            (folder / name).mkdir()
        subprocess.run([need("node"), "paa.mjs", "paa"], cwd=folder, check=True, timeout=60)

    async def start_server(self) -> None:
        """Start the server. Return when the server answers."""
        # without this file, the server replaces these certificates with downloads
        (self.folder / "paa" / ".version").touch()
        await self.start(
            "server",
            *(str(LAB / "withdata.sh"), "data", str(self._server), "-m", "matter_server.server"),
            *("--storage-path", "server", "--paa-root-cert-dir", "paa", "--ota-provider-dir", "ota"),
            *("--listen-address", "127.0.0.1", "--port", "5580", "--primary-interface", "m0"),
        )
        await until_async(self._is_answering, START_SECS)

    async def start_devices(self, group: str, *names: str) -> None:
        """Start these devices as one process. Return when each device has printed its codes."""
        await self.start(group, need("node"), "devices.mjs", "devices", f"{group}.sock", *names)
        log = self.folder / f"{group}.log"

        def reported() -> bool:
            lines = re.findall(r"^\{.*\}$", log.read_text(), re.MULTILINE)
            self.codes |= {each["name"]: each for each in map(json.loads, lines) if "qrPairingCode" in each}
            return all(f'"{name}"' in "".join(lines) for name in names)

        await until(reported, START_SECS)
        await until((self.folder / f"{group}.sock").exists, START_SECS)

    async def control(self, group: str, name: str, **what: Any) -> None:
        """Make a device do something, as defined by `devices.mjs`."""
        connector = aiohttp.UnixConnector(str(self.folder / f"{group}.sock"))
        async with aiohttp.ClientSession(connector=connector) as session:
            async with session.post(f"http://x/{name}", json=what) as answer:
                assert answer.status == 200, await answer.text()

    async def end(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End a process and all its children."""
        process = self._running.pop(name)
        with suppress(ProcessLookupError):  # the process ended by itself
            os.killpg(process.pid, how)
        await process.wait()

    async def start(self, name: str, *command: str, variables: Mapping[str, str] | None = None) -> None:
        """Start a process with this name and a new log."""
        with (self.folder / f"{name}.log").open("w") as log:
            self._running[name] = await asyncio.create_subprocess_exec(
                *command,
                cwd=self.folder,
                env={**os.environ, **(variables or {})},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def has_ended(self, name: str) -> bool:
        """Return whether the process ended by itself."""
        return self._running[name].returncode is not None

    async def _is_answering(self) -> bool:
        assert self._running["server"].returncode is None, (self.folder / "server.log").read_text()[-2000:]
        try:
            async with aiohttp.ClientSession() as session, session.get("http://127.0.0.1:5580/info") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    async def close(self) -> None:
        """End all processes that are still running."""
        for name in list(self._running):
            await self.end(name, signal.SIGKILL)


@asynccontextmanager
async def laboratory(paths: Mapping[str, str]) -> AsyncIterator[Laboratory]:
    """Provide the laboratory in a folder, with the results of `find_server` and `find_devices`."""
    lab = Laboratory(Path(paths["folder"]), Path(paths["server"]), Path(paths["modules"]))
    try:
        yield lab
    finally:
        await lab.close()
