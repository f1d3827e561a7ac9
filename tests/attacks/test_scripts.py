"""Hostile scripts in a hub process. Each script ends in time with one error message, and other requests are
answered. Afterwards, neither the hub nor a worker keeps memory or tasks of the scripts."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.elgato_lights.simulator import LightSimulator
from tests.attacks.scripts import AUTOMATIONS, BODIES, FILES, HELPERS, SCRIPTS
from tests.fakes.process import Process, configure, light_section, running

CPU_SECS, BACKSTOP_SECS = 1.0, 3.0
LIMITS = f"""
[scripts]
max_cpu_secs = {CPU_SECS}
[automations.runner]
backstop_timeout_secs = {BACKSTOP_SECS:g}
"""
IS_ALONE = "ATTACK_ALONE" in os.environ
"""Whether the machine is idle, so that the promised limits apply."""
MAX_HEALTH_SECS, LATE_SECS = (0.5, 2.0) if IS_ALONE else (5.0, 10.0)
MAX_CPU = 0.1
SECONDS_WATCHED = 3 if IS_ALONE else 15
MAX_GROWTH_BYTES = 40 << 20
MAX_SENTENCE_CHARS, MAX_SENTENCES = 5_000, 100
AT_ONCE = 3 if IS_ALONE else 8
PARTS = 6
INNOCENT = "ctx:sleep(1) print('on')"


def starved_secs(pid: int) -> dict[str, float]:
    """Return how long each thread of a process has waited for a processor, if the kernel measures this time."""
    starved = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            starved[thread.name] = int((thread / "schedstat").read_text().split()[1]) / 1e9
    return starved


class Home:
    """A hub process, its folder, and the resources of its processes."""

    def __init__(self, hub: Process, folder: Path) -> None:
        self.hub = hub
        self.config = folder / "config"
        self._starved: dict[str, float] = {}

    def pids(self) -> list[int]:
        hub = self.hub.popen.pid
        children: list[int] = []
        for task in Path(f"/proc/{hub}/task").iterdir():
            with suppress(FileNotFoundError):
                children += map(int, (task / "children").read_text().split())
        return [hub, *children]

    def clock(self) -> float:
        """Return the elapsed seconds without the time in which the threads of hub and test waited for a processor."""
        self._starved |= starved_secs(self.hub.popen.pid) | starved_secs(os.getpid())
        return time.monotonic() - sum(self._starved.values())

    def cpu_secs(self) -> float:
        ticks = 0
        for pid in self.pids():
            with suppress(FileNotFoundError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory_bytes(self) -> int:
        """Return the resident memory from `statm`. Any user can read this file, even that of a protected process."""
        pages = 0
        for pid in self.pids():
            with suppress(FileNotFoundError, ProcessLookupError):
                pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    async def rest(self) -> list[str]:
        """Observe the hub for some seconds, beginning after one second. Return the problems of each second. On a
        busy machine, delays are not problems."""
        await asyncio.sleep(1)
        for _ in range(SECONDS_WATCHED):
            used = self.cpu_secs()
            await asyncio.sleep(1)
            if (burnt := self.cpu_secs() - used) <= MAX_CPU:
                return []
        return [f"{burnt:.2f} s of the processor in a second afterwards"]

    @asynccontextmanager
    async def watched(self, wrong: list[str], what: str) -> AsyncIterator[None]:
        """Record each late health response of the hub. `slowest` is the longest wait."""
        asking = asyncio.ensure_future(self._ask_health())
        try:
            yield
        finally:
            asking.cancel()
        if self.slowest > MAX_HEALTH_SECS:
            wrong.append(f"{what}: /health took {self.slowest:.2f} s")

    async def _ask_health(self) -> None:
        self.slowest = 0.0
        while True:
            began = self.clock()
            with suppress(TimeoutError):
                async with asyncio.timeout(30):
                    await self.hub.ask("GET", "/health")
            self.slowest = max(self.slowest, self.clock() - began)
            await asyncio.sleep(0.02)


def scene(id_: str, body: str) -> str:
    return f"return {{id = '{id_}', name = 'X', execute = function(ctx)\n{body}\nend}}"


def furnish(folder: Path, light: str) -> None:
    configure(folder, LIMITS + light_section(light))
    for kind in ("scenes", "automations", "scripts"):
        (folder / "config" / kind).mkdir(parents=True)
    scenes, scripts = folder / "config" / "scenes", folder / "config" / "scripts"
    for id_, body in (*BODIES.items(), *HELPERS.items(), ("innocent", INNOCENT)):
        (scenes / f"{id_}.lua").write_text(scene(id_, body))
    for name, text in SCRIPTS.items():
        (scripts / f"{name}.lua").write_text(text)
    os.mkfifo(scripts / "pipe.lua")
    (scripts / "folder.lua").mkdir()
    (scripts / "away.lua").symlink_to("/etc/passwd")
    (scripts / "zero.lua").symlink_to("/dev/zero")
    (scripts / "loop.lua").symlink_to("loop.lua")


async def end_of(home: Home, path: str, json: Any = None) -> tuple[float, int, Any]:
    """Return seconds, status, and body of the response."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(30):
            status, body = await home.hub.ask("POST", path, json)
    except TimeoutError:
        status, body = 0, {"error": "ESCAPED"}
    return time.monotonic() - began, status, body


def faults_of(name: str, took: float, status: int, body: Any) -> list[str]:
    """Return the problems with the end of a scene or an automation."""
    output = str(body.get("error") or "")
    wrong: list[str] = []
    if took > BACKSTOP_SECS + LATE_SECS:
        wrong.append(f"{name}: took {took:.1f} s")
    if status not in (200, 400) or len(output) > MAX_SENTENCE_CHARS or (status == 400 and "config/" not in output):
        wrong.append(f"{name}: {status} {output[:300]}")
    if any(each in output for each in ("Traceback", "inside the hub", "worker failed")):
        wrong.append(f"{name}: {output[:300]}")
    return wrong


async def attack(home: Home, names: Sequence[str]) -> list[str]:
    """Run these scenes in parallel with a harmless scene. Return the problems of each scene."""
    before = home.memory_bytes()
    wrong: list[str] = []
    async with home.watched(wrong, " ".join(names)):
        innocent = asyncio.ensure_future(end_of(home, "/scenes/innocent/execute"))
        ends = await asyncio.gather(*(end_of(home, f"/scenes/{name}/execute") for name in names))
        _, status, body = await innocent
    for name, (took, status_, body_) in zip(names, ends, strict=True):
        wrong += faults_of(name, took, status_, body_)
        print_line(f"{name:16} {took:5.2f} s {status_} {str(body_.get('error'))[:150]}")
    if status != 200 and "the Lua worker was killed" not in str(body):
        wrong.append(f"{names}, an innocent: {status} {body}")
    wrong += [f"{names}: {each}" for each in await home.rest()]
    grown = home.memory_bytes() - before
    if grown > MAX_GROWTH_BYTES:
        wrong.append(f"{names}: {grown >> 20} MB kept")
    print_line(f"   slowest /health {home.slowest:.3f}, grown {grown / 1e6:.1f} MB")
    return wrong


def print_line(line: str) -> None:
    print(line, flush=True)


@pytest.mark.slow
@pytest.mark.release
@pytest.mark.parametrize("part", range(PARTS))
async def test_every_hostile_scene_ends_and_leaves_nothing_a_second_later(tmp_path: Path, part: int) -> None:
    only = os.environ.get("ATTACK_ONLY", "").split()
    rows = [id_ for id_ in list(BODIES)[part::PARTS] if not only or id_ in only]
    async with LightSimulator() as light:
        furnish(tmp_path, light.url)
        async with running(tmp_path) as hub:
            await hub.ready()
            home = Home(hub, tmp_path)
            wrong: list[str] = []
            for first in range(0, len(rows), AT_ONCE):
                wrong += await attack(home, rows[first : first + AT_ONCE])
            output = hub.log.read_text()
            print(f"{len(output)} bytes of log")
            assert "Traceback" not in output, output[output.index("Traceback") - 300 :][:3000]
    assert wrong == [], "\n".join(wrong)


@pytest.mark.slow
async def test_files_are_refused_at_a_reload(tmp_path: Path) -> None:
    furnish(tmp_path, "http://127.0.0.1:9")
    config = tmp_path / "config"
    wrong: list[str] = []
    async with running(tmp_path) as hub:
        home = Home(hub, tmp_path)
        before = home.memory_bytes()
        for kind, (name, text) in itertools.product(("scenes", "automations"), FILES):
            file = config / kind / "bad.lua"
            file.write_text(text)
            async with home.watched(wrong, f"{kind} {name}"):
                took, status, body = await end_of(home, f"/{kind}/reload")
            file.unlink()
            output = [each["message"] for each in body.get("errors", ()) if "bad.lua" in each["file"]]
            if status != 200 or body["status"] != "error" or not output or took > CPU_SECS + LATE_SECS:
                wrong.append(f"{kind} {name}: {took:.1f} s {status} {str(body)[:300]}")
            if len(output) > MAX_SENTENCES or any(len(each) > MAX_SENTENCE_CHARS for each in output):
                wrong.append(
                    f"{kind} {name}: {len(output)} sentences, the longest of {max(map(len, output))} characters"
                )
            print_line(f"{kind} {name:16} {took:5.2f} s {home.slowest:.3f} {len(output)} {str(output)[:150]}")
        wrong += await home.rest()
        if (grown := home.memory_bytes() - before) > MAX_GROWTH_BYTES:
            wrong.append(f"{grown >> 20} MB kept")
        assert "Traceback" not in hub.log.read_text()
    assert wrong == [], "\n".join(wrong)


@pytest.mark.slow
async def test_automations_are_loaded_or_refused(tmp_path: Path) -> None:
    furnish(tmp_path, "http://127.0.0.1:9")
    config = tmp_path / "config"
    with (config / "default.toml").open("a") as file:
        file.write("[locale]\nlatitude = 52.5\nlongitude = 13.4\n")
    wrong: list[str] = []
    async with running(tmp_path) as hub:
        home = Home(hub, tmp_path)
        before = home.memory_bytes()
        for name, fields in AUTOMATIONS:
            lua = config / "automations" / "a.lua"
            lua.write_text(f"return {{id = 'a', name = 'A', {fields}, execute = function(ctx, event) end}}")
            run = None
            async with home.watched(wrong, name):
                took, status, body = await end_of(home, "/automations/reload")
                if body["status"] == "ok":
                    _, run, _ = await end_of(home, "/automations/a/execute", {"trigger_payload": {"type": "x"}})
                    for path in ("", "/a", "/a/next", "/a/history"):
                        await hub.get(f"/automations{path}")
                    await hub.get("/diagnostics")
            print_line(f"{name:16} {took:5.2f} s {home.slowest:.3f} {str(body)[:200]} {run}")
            if status != 200 or took > CPU_SECS + LATE_SECS or run not in (None, 200):
                wrong.append(f"{name}: {took:.1f} s {status} {str(body)[:300]} {run}")
            wrong += [f"{name}: {each}" for each in await home.rest()]
        if (grown := home.memory_bytes() - before) > MAX_GROWTH_BYTES:
            wrong.append(f"{grown >> 20} MB kept")
        output = hub.log.read_text()
        assert "Traceback" not in output, output[output.index("Traceback") - 300 :][:3000]
    assert wrong == [], "\n".join(wrong)
