"""Starts hubs and other servers as separate processes, which are measured from outside."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from benchmarks._client import KEY, ask
from benchmarks._frame import Row, Sample

ROOT = Path(__file__).parent.parent
MODULE = (sys.executable, "-m", "appliance")
"""The command that starts the hub from the source tree."""

MAX_TURN_MS = 20
CPU_CLOCK = 2
"""In the clock id for a process's processor time, the low bits have this value. The other bits contain the process
id (clock_getcpuclockid(3))."""


class Running(Struct, frozen=True, kw_only=True):
    """A running hub or another process. `started_after` is the number of seconds until the process's first
    response."""

    pid: int
    port: int = 0
    started_after: float = 0.0
    turns: Path = Path()

    def forget_turns(self) -> None:
        """In a watched hub, forget the longest iteration of the event loop, and measure again."""
        os.kill(self.pid, signal.SIGUSR1)

    def longest_turn(self, when: str) -> Sample:
        """Return a row with the longest iteration of the hub's event loop, and print the cause of this iteration."""
        ms, cause = json.loads(self.turns.read_text())
        print(f"{when}: longest turn {ms:.1f} ms, most of it {cause}", file=sys.stderr)
        label = f"{when}: longest step of the event loop"
        return Row(label=label, unit="ms", at_most=MAX_TURN_MS).sample(ms)

    def pids(self) -> list[int]:
        """Return the hub's processes, including its Lua worker."""
        found = [self.pid]
        for pid in found:
            for task in Path(f"/proc/{pid}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
        return found

    def resident_mb(self, field: str = "VmRSS") -> float:
        """Return the resident memory of the hub's main process in megabytes (10^6 bytes). The field `VmHWM` is the
        peak."""
        return _field(f"/proc/{self.pid}/status", field) * 1024 / 1e6

    def pss_mb(self) -> float:
        """Return the memory of the hub and its worker in megabytes. A shared page is divided among the processes that
        share it."""
        return sum(_field(f"/proc/{pid}/smaps_rollup", "Pss") for pid in self.pids()) * 1024 / 1e6

    def cpu_secs(self) -> float:
        """Return the processor time of the hub and its worker, more exactly than the ticks in `/proc`."""
        return sum(time.clock_gettime(~pid << 3 | CPU_CLOCK) for pid in self.pids())

    def written_mb(self) -> float:
        """Return the number of megabytes that the hub and its worker have written to storage. The kernel counts
        whole pages. With ext4 on recent kernels (for example 6.18), the kernel counts a block of several pages if one
        page of this block changes, so the figure can be higher than the number of bytes on the card."""
        return sum(_field(f"/proc/{pid}/io", "write_bytes") for pid in self.pids()) / 1e6

    def wakeups(self) -> int:
        """Return how often threads of the hub and its worker were woken after a voluntary sleep."""
        tasks = [task for pid in self.pids() for task in Path(f"/proc/{pid}/task").iterdir()]
        return sum(_field(f"{task}/status", "voluntary_ctxt_switches") for task in tasks)


def _field(file: str, name: str) -> int:
    return int(next(line for line in Path(file).read_text().splitlines() if line.startswith(f"{name}:")).split()[1])


@contextlib.contextmanager
def hub(
    config: str = "",
    *,
    folder: Path | None = None,
    command: Sequence[str] = MODULE,
    is_watched: bool = False,
    port: int = 0,
) -> Iterator[Running]:
    """Run `lares run` with these configuration sections inside the `async with` block. The block begins with the
    first authenticated response.

    If `folder` is given, configuration and data are kept for the next start. If `folder` is None, configuration and
    data are temporary. The hub listens at `port`, or at a free port if `port` is 0. If `is_watched` is true, the hub
    measures its longest loop iteration. The measurement makes the hub slower, so do not use the hub's other figures.
    """
    with contextlib.ExitStack() as stack:
        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lares-benchmark-")))
        port = port or free_port()
        file = place / "config" / "default.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        (place / "data").mkdir(exist_ok=True)
        file.write_text(f'[api]\nbind_address = "127.0.0.1:{port}"\n[logging]\nlevel = "warning"\n{config}')
        variables = {**environment(), "PYTHONPATH": str(ROOT), "LARES_MASTER_KEY": KEY}
        variables["STATE_DIRECTORY"] = str(place / "data")  # the single file is also unpacked in this folder
        turns = place / "turns"
        command = (sys.executable, "-m", "benchmarks._turns", str(turns)) if is_watched else command
        began = time.perf_counter()
        process = subprocess.Popen([*command, "run"], cwd=place, env=variables, stdout=sys.stderr)
        try:
            ask(port, "GET", "/devices")
            started_after = time.perf_counter() - began
            yield Running(port=port, pid=process.pid, started_after=started_after, turns=turns)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(15)
        if process.returncode:
            raise RuntimeError(f"the hub ended with exit code {process.returncode}")


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("LARES_", "PYTHON"))}


@contextlib.contextmanager
def peer(name: str, *arguments: str, given: bytes = b"") -> Iterator[Sequence[int]]:
    """Run a server of `_peers.py` in a separate process inside the `with` block, and yield the server's ports."""
    command = [sys.executable, "-m", "benchmarks._peers", name, *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(given)
            process.stdin.close()
            yield [int(port) for port in process.stdout.readline().split()]
        finally:
            process.terminate()


def lamps(ports: Sequence[int], poll_secs: int = 3600) -> str:
    """Return a configuration section for each simulated lamp, named `lamp0`, `lamp1`, and so on."""
    return "".join(
        f'[adapters.lamp{number}]\ntype = "elgato_lights"\nbase_url = "http://127.0.0.1:{port}"\n'
        f"poll_interval_secs = {poll_secs}\n"
        for number, port in enumerate(ports)
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
