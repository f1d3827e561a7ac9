"""The single file: its size, first and warm starts, memory when idle and after an hour's work, threads, files."""

from __future__ import annotations

import asyncio
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.simulator import TvSimulator
from benchmarks._client import one, request
from benchmarks._processes import KEY, ROOT, Running, ask, free_port

FILE = ROOT / "dist" / "lares.pyz"
PYTHON: str = getattr(sys, "_base_executable", sys.executable)
ROUNDS = 7

COMMANDS = 240
LISTINGS = 3600
"""An hour of a home with a light and a TV: a command every fifteen seconds, a listing every second."""


def measure() -> Iterator[tuple[str, str]]:
    """Labels and figures; medians of the rounds, least and most in brackets."""
    if not FILE.exists():
        yield "there is no dist/lares.pyz; make it first", "python3 build.py"
        return
    yield "size, MB", f"{FILE.stat().st_size / 1e6:.2f}"
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as name:
        folder = Path(name)
        yield from _starts(folder)
        yield from asyncio.run(_an_hour(folder))


def _starts(folder: Path) -> Iterator[tuple[str, str]]:
    first = [_first_start(folder / f"first-{number}") for number in range(3)]
    warm = folder / "warm"
    _first_start(warm)
    modules, site = _third_party(warm)
    code = f"import sys; sys.path.insert(0, {site!r}); import {', '.join(modules)}"
    bare, imports, starts = [], [], []
    for _ in range(ROUNDS):  # in turns, so that a busy machine hits all alike
        bare.append(_run("pass"))
        imports.append(_run(code))
        with _boxed(warm) as running:
            starts.append(running.started_after * 1000)
    yield "first start to first answer, unpacking, ms", _spread(first)
    yield "python -c pass, ms", _spread(bare)
    yield f"python importing its {len(modules)} third-party modules, ms", _spread(imports)
    yield "warm start to first answer, ms", _spread(starts)
    ratio = statistics.median(starts) / statistics.median(imports)
    yield "ratio of that to the imports (at most 1.5)", f"{ratio:.2f}"


def _first_start(folder: Path) -> float:
    with _boxed(folder) as running:
        return running.started_after * 1000


def _third_party(folder: Path) -> tuple[list[str], str]:
    """The modules from outside of Python and Lares that a hub has loaded at its first answer, and where they lie."""
    [site] = (str(path) for path in (folder / "data" / "program").glob("*/site-packages"))
    with _boxed(folder, PYTHONVERBOSE="1") as running:
        log = (folder / "log").read_text(errors="replace")
        assert running.pid
    found = {line.split("'")[1] for line in log.splitlines() if "FileLoader" in line and line.startswith("import '")}
    own = ("appliance", "lares_")
    names = sorted(name for name in found if _is_in(site, name) and not name.startswith(own))
    return names, site


def _is_in(site: str, name: str) -> bool:
    top = Path(site) / name.partition(".")[0]
    return top.is_dir() or top.with_suffix(".py").exists() or any(Path(site).glob(f"{top.name}.*.so"))


@contextmanager
def _boxed(folder: Path, adapters: str = "", **environment: str) -> Iterator[Running]:
    """A hub that runs from the file in the folder, from its first authenticated answer on."""
    port = free_port()
    config = folder / "config" / "default.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    (folder / "data").mkdir(exist_ok=True)
    config.write_text(f'[api]\nbind_address = "127.0.0.1:{port}"\n[logging]\nlevel = "warning"\n{adapters}')
    began = time.perf_counter()
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [PYTHON, "-I", "-S", FILE, "run"] if not environment else [PYTHON, "-S", FILE, "run"],
            cwd=folder,
            env={"LARES_MASTER_KEY": KEY, **environment},
            stderr=log,
        )
    try:
        ask(port, "/devices")
        yield Running(port=port, pid=process.pid, started_after=time.perf_counter() - began)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


async def _an_hour(folder: Path) -> list[tuple[str, str]]:
    """Figures of an idle hub, and of one that has done an hour's work as fast as it goes."""
    async with LightSimulator() as light, TvSimulator() as tv:
        adapters = (
            f'[adapters.elgato_lights]\nbase_url = "{light.url}"\npoll_interval_secs = 1\n'
            f'[adapters.roku_tv]\nip_address = "{tv.host}"\nport = {tv.port}\npoll_interval_secs = 1\n'
        )
        with ExitStack() as stack:
            running = await asyncio.to_thread(stack.enter_context, _boxed(folder / "warm", adapters))
            await asyncio.sleep(3)
            idle = running.resident_mb()
            threads, files = running.threads(), running.files()
            await _work(running.port)
            worked = running.resident_mb()
            await asyncio.to_thread(stack.close)
    return [
        ("resident memory idle with a light and a TV, MB (at most 60)", f"{idle:.1f}"),
        ("threads, idle", str(threads)),
        ("file descriptors, idle", str(files)),
        ("resident memory after an hour's work, accelerated, MB", f"{worked:.1f}"),
    ]


async def _work(port: int) -> None:
    path = "/devices/elgato_lights:light:0/command"
    for number in range(LISTINGS):
        if number < COMMANDS:
            body = {"capability": "brightness", "action": "set", "value": number % 100}
            await one(port, request("POST", path, json.dumps(body).encode()))
        await one(port, request("GET", "/devices"))


def _run(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([PYTHON, "-I", "-S", "-c", code], check=True)
    return (time.perf_counter() - began) * 1000


def _spread(figures: list[float]) -> str:
    return f"{statistics.median(figures):.0f} ({min(figures):.0f} to {max(figures):.0f})"
