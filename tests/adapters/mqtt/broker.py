"""A real Mosquitto on loopback, started and ended by its own process id; with password, and TLS if asked."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import aiomqtt
import pytest

USER, PASSWORD = "lares", "only-for-tests"


def programs() -> tuple[str, str] | None:
    """Where Mosquitto and its password tool are; None where it is not installed."""
    paths = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin:/opt/homebrew/sbin"
    found = shutil.which("mosquitto", path=paths), shutil.which("mosquitto_passwd", path=paths)
    return (found[0], found[1]) if found[0] and found[1] else None


def require() -> None:
    """Skip the test, loudly, where there is no broker to run it against."""
    if programs() is None:
        reason = "MOSQUITTO IS NOT INSTALLED: the tests against a real broker are skipped (apt-get install mosquitto)"
        pytest.skip(reason)


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def add_user(folder: Path, name: str) -> None:
    """Let a broker of this folder know one more user, whose password is `PASSWORD`."""
    found, passwords = programs(), folder / "passwords"
    assert found is not None
    create = [] if passwords.exists() else ["-c"]
    subprocess.run([found[1], "-b", *create, passwords, name, PASSWORD], check=True, capture_output=True)


class Mosquitto:
    """One broker. It may be killed and started again at the same port."""

    def __init__(self, folder: Path, *, lines: str = "") -> None:
        require()
        self.port = free_port()
        self.tls_port = 0
        self._folder = folder
        self._lines = lines
        self._process: subprocess.Popen[bytes] | None = None

    def with_tls(self) -> Path:
        """Let it also listen with TLS; the certificate that clients have to trust."""
        cert, key = self._folder / "cert.pem", self._folder / "key.pem"
        subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        command = ["openssl", "req", *kind, *subject, "-keyout", str(key), "-out", str(cert)]
        subprocess.run(command, check=True, capture_output=True)
        key.chmod(0o644)
        self.tls_port = free_port()
        self._lines += f"listener {self.tls_port} 127.0.0.1\ncertfile {cert}\nkeyfile {key}\n"
        return cert

    async def start(self) -> None:
        """Start, and return when it listens."""
        self._launch()
        for _ in range(500):
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return
            await asyncio.sleep(0.02)
        self.stop()
        raise AssertionError("mosquitto does not listen")

    def _launch(self) -> None:
        found = programs()
        assert found is not None
        passwords, config = self._folder / "passwords", self._folder / "mosquitto.conf"
        if not passwords.exists():
            add_user(self._folder, USER)
        user = "user root\n" if os.geteuid() == 0 else ""
        config.write_text(
            f"{user}per_listener_settings false\nallow_anonymous false\npassword_file {passwords}\n"
            f"persistence false\nlog_type none\nlistener {self.port} 127.0.0.1\n{self._lines}"
        )
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen([found[0], "-c", config], stdout=quiet, stderr=quiet)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(20)
            self._process = None

    def client(self, name: str = "announcer") -> aiomqtt.Client:
        """A client as announcers have it."""
        return aiomqtt.Client("127.0.0.1", self.port, username=USER, password=PASSWORD, identifier=name)


@contextlib.asynccontextmanager
async def running(folder: Path, *, lines: str = "") -> AsyncIterator[Mosquitto]:
    """A broker that runs for as long as the context."""
    broker = Mosquitto(folder, lines=lines)
    await broker.start()
    try:
        yield broker
    finally:
        broker.stop()
