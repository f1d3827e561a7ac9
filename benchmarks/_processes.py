"""Hubs as processes of their own, for benchmarks that measure from outside."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

KEY = "benchmark-master-key"
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A hub that answered; `started_after` is the seconds from its process's start to that answer."""

    port: int
    pid: int
    started_after: float

    def resident_mb(self) -> float:
        """Resident memory in megabytes (10^6 bytes)."""
        return self._status("VmRSS") * 1024 / 1e6

    def peak_mb(self) -> float:
        """The most memory that was ever resident, in megabytes."""
        return self._status("VmHWM") * 1024 / 1e6

    def threads(self) -> int:
        """Threads."""
        return self._status("Threads")

    def files(self) -> int:
        """Open file descriptors."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def _status(self, field: str) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(f"{field}:")).split()[1])


@contextlib.contextmanager
def hub(adapters: str = "") -> Iterator[Running]:
    """A `lares run` with these adapter sections, from its first authenticated answer to its end."""
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder:
        port = free_port()
        config = Path(folder) / "config" / "default.toml"
        config.parent.mkdir()
        config.write_text(f'[api]\nbind_address = "127.0.0.1:{port}"\n[logging]\nlevel = "warning"\n{adapters}')
        environment = {**os.environ, "LARES_MASTER_KEY": KEY, "PYTHONPATH": str(ROOT)}
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "appliance", "run"], cwd=folder, env=environment)
        try:
            ask(port, "/devices")
            yield Running(port=port, pid=process.pid, started_after=time.perf_counter() - began)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)


def ask(port: int, path: str, patience: float = 20.0) -> bytes:
    """The raw answer to one authenticated GET; connecting is tried until it works."""
    deadline = time.perf_counter() + patience
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n\r\n"
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                connection.sendall(request.encode())
                answer = b"".join(iter(lambda: connection.recv(65536), b""))
            assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
            return answer
        except ConnectionRefusedError:
            if time.perf_counter() > deadline:
                raise
            time.sleep(0.002)


def free_port() -> int:
    """A port of loopback that nobody listens on at present."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
