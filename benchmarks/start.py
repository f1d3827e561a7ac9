"""The time from the start of the process to its first response to an authenticated request, compared with `import
sanic` and Node-RED."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks._frame import Row, Sample, Skipped
from benchmarks._node_red import node_red
from benchmarks._processes import MODULE, ROOT, environment, hub, lamps, peer

SECTIONS = 100
FILE = ROOT / "dist" / "lares.pyz"
PYTHON: str = getattr(sys, "_base_executable", sys.executable)
AS_FILE = (PYTHON, "-I", "-S", str(FILE))
SANIC, WARM, EMPTY = 'python -c "import sanic"', "a warm start", "a start without sections"
PASS = Row(label="python -c pass", unit="ms")
MEMORY = Row(label="memory of the hub's process after the start", unit="MB", at_most=60)
FIRST = Row(
    label="as single file, unpacking first (after an upgrade)",
    unit="ms",
    floor=WARM,
    at_most=3,
    is_felt=True,
)


def measure(rounds: int) -> Iterator[Sample | Skipped]:
    """In each round, measure each way to start. If the single file exists, include it."""
    ways = {"as module": MODULE, "as single file": AS_FILE} if FILE.exists() else {"as module": MODULE}
    if not FILE.exists():
        yield Skipped("the single file is not there; make it with `python3 build.py`")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lares-benchmark-")))
        config = lamps(stack.enter_context(peer("lamps", str(SECTIONS), "1")))
        for way, command in ways.items():  # this run compiles the imported modules
            _start(command, folder / way)
            _start(command, folder / way, config)
        for number in range(rounds):
            yield PASS.sample(_run("pass"))
            for way, command in ways.items():
                sanic = _run("import sanic")
                fresh, _ = _start(command, folder / f"{way}-{number}")
                warm, memory = _start(command, folder / way)
                many, _ = _start(command, folder / way, config)
                row = Row(label=f"{way}, warm", unit="ms", floor=SANIC, at_most=1.35, is_felt=command is AS_FILE)
                yield row.sample(warm, sanic, _start_node_red() if command is AS_FILE else None)
                if command is MODULE:
                    row = Row(label=f"{way}, with an empty store", unit="ms", floor=SANIC, at_most=1.35)
                    yield row.sample(fresh, sanic)
                else:
                    yield FIRST.sample(fresh, warm)
                row = Row(label=f"{way}, warm, {SECTIONS} sections", unit="ms", floor=EMPTY, at_most=1.2)
                yield row.sample(many, warm)
                yield MEMORY.sample(memory)


def _start(command: Sequence[str], folder: Path, config: str = "") -> tuple[float, float]:
    """Start a hub. Return the milliseconds until the first response, and the memory in megabytes at that moment."""
    with hub(config, folder=folder, command=command) as running:
        return 1000 * running.started_after, running.resident_mb()


def _start_node_red() -> float | None:
    """Return the milliseconds until the first response of a flow with one route."""
    with node_red() as running:
        return 1000 * running.started_after if running else None


def _run(code: str) -> float:
    """Return the milliseconds that Python takes for the code, from start to end."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment())
    return 1000 * (time.perf_counter() - began)
