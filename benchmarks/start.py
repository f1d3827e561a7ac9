"""From the start of the process to its first authenticated answer; memory and threads when idle."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks._processes import Running, hub

ROUNDS = 7

LIGHT_AND_TV = """
[adapters.elgato_lights]
base_url = "http://127.0.0.1:9"
[adapters.roku_tv]
ip_address = "127.0.0.1"
port = 9
"""
IMPORTS = "import sanic, aiohttp, orjson, tomli, argon2, defusedxml.ElementTree"


def measure() -> Iterator[tuple[str, str]]:
    """Labels and figures; medians of the rounds, least and most in brackets."""
    bare = [_run("pass") for _ in range(ROUNDS)]
    imports = [_run(IMPORTS) for _ in range(ROUNDS)]
    empty = [_start("") for _ in range(ROUNDS)]
    home = [_start(LIGHT_AND_TV) for _ in range(ROUNDS)]
    yield "python -c pass, ms", _spread([1000 * each for each in bare])
    yield "python importing what the hub imports, ms", _spread([1000 * each for each in imports])
    yield "lares run to first answer, no adapters, ms", _spread([1000 * each[0] for each in empty])
    yield "lares run to first answer, light and TV, ms", _spread([1000 * each[0] for each in home])
    ratio = statistics.median(each[0] for each in home) / statistics.median(imports)
    yield "ratio of that to the imports alone", f"{ratio:.2f}"
    yield "resident memory, light and TV, MB", _spread([each[1] for each in home])
    yield "threads", _spread([float(each[2]) for each in home])


def _start(adapters: str) -> tuple[float, float, int]:
    with hub(adapters) as running:
        time.sleep(0.3)
        return _figures(running)


def _figures(running: Running) -> tuple[float, float, int]:
    return running.started_after, running.resident_mb(), running.threads()


def _run(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - began


def _spread(figures: list[float]) -> str:
    return f"{statistics.median(figures):.1f} ({min(figures):.1f} to {max(figures):.1f})"
