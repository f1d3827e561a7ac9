"""A hub from the single file, and its HTTP client."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIGHT = "elgato_lights:light:0"
KEY = "master-key-of-the-box"


def configure(folder: Path, light_url: str = "", port: int = 0) -> Path:
    """Write a configuration with at most one light, on this loopback port or a free one. Return its file."""
    file = folder / "config" / "default.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    light = f'[adapters.elgato_lights]\nbase_url = "{light_url}"\npoll_interval_secs = 1\n' if light_url else ""
    file.write_text(f'[api]\nbind_address = "127.0.0.1:{port}"\n[auth]\nmaster_key = "{KEY}"\n{light}')
    return file


@dataclass(slots=True, kw_only=True)
class Box:
    """A hub that listens at the port. `log` contains the hub's output."""

    process: subprocess.Popen[bytes] | None
    log: Path
    port: int
    host: str = "127.0.0.1"

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and body of a response."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        with closing(connection):
            connection.request(method, path, json.dumps(body) if body else None, {"Authorization": f"Bearer {KEY}"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")

    def until(self, path: str, holds: Any, within: float = 60.0) -> Any:
        """Wait until the response of the path fulfils the condition, and return the response's body."""
        deadline = time.monotonic() + within
        while True:
            status, body = self.ask("GET", path)
            if holds(status, body):
                return body
            assert time.monotonic() < deadline, (path, status, body, self.log.read_text())
            time.sleep(0.05)

    def comes_up(self, within: float = 60.0) -> None:
        deadline = time.monotonic() + within
        while True:
            with suppress(ConnectionRefusedError):
                self.ask("GET", "/health")
                return
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def shows(self, device_id: str, **attributes: Any) -> None:
        """Wait until the device reports these attributes."""
        path = f"/devices/{device_id}"
        self.until(path, lambda status, body: status == 200 and attributes.items() <= body["attributes"].items())

    def stop(self) -> int:
        """Stop the hub, and return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@contextmanager
def started(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> Iterator[Box]:
    """Run the hub with this command. Yield once the hub answers. If the hub is still running at the end, kill it."""
    log = folder / "box.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(list(command), cwd=folder, env=dict(environment), stdout=stream, stderr=stream)
    try:
        yield Box(process=process, log=log, port=_port(process, log))
    finally:
        process.kill()
        process.wait()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + 120
    while not (port := port_in(log)):
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)
    return port


def port_in(log: Path) -> int:
    """Return the last port in the log, or 0."""
    return max((0, *(int(port) for port in re.findall(r"listening at http://\S+:(\d+)", log.read_text())[-1:])))
