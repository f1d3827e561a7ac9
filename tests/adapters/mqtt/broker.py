"""Brokers for tests: a small fake broker and, if Mosquitto is installed, also Mosquitto, which is stricter."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Sequence
from pathlib import Path
from typing import TypeVar

import aiomqtt
import pytest

from tests.fakes import mqtt_broker
from tests.fakes.process import free_port
from tests.fakes.programs import need

T = TypeVar("T")

USER, PASSWORD = "lares", "only-for-tests"

TLS = Path(__file__).parents[2] / "fixtures" / "tls"
CERTIFICATE, KEY = TLS / "cert.pem", TLS / "key.pem"
"""A self-signed certificate for 127.0.0.1, valid for a hundred years. The file with the certificate's private key is
public."""

both_brokers = pytest.mark.parametrize(
    "broker", ["own", pytest.param("mosquitto", marks=pytest.mark.slow)], indirect=True
)
"""Runs a test with both the fake broker and Mosquitto."""


class Announcer(aiomqtt.Client):
    """The library's client, with a wait that can be cancelled.

    The library uses `asyncio.wait_for`. In Python 3.11, this function loses a cancellation that comes together with
    the result.
    """

    async def _wait_for(self, fut: Awaitable[T], timeout: float | None) -> T:
        limit = self.timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(None if limit == math.inf else limit):
                return await fut
        except TimeoutError:
            raise aiomqtt.MqttError("Operation timed out") from None


class Broker:
    """A broker that can be killed, and started again at the same port. All users have the same password."""

    port = 0
    tls_port = 0

    async def start(self) -> None:
        raise NotImplementedError

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        self.stop()

    def client(self, name: str = "announcer", user: str = USER) -> Announcer:
        return Announcer("127.0.0.1", self.port, username=user, password=PASSWORD, identifier=name)


class OwnBroker(mqtt_broker.Broker, Broker):
    """The fake broker of the tests."""

    def __init__(self, _folder: Path, users: Sequence[str] = (USER,), access: str | None = None) -> None:
        super().__init__(dict.fromkeys(users, PASSWORD), access)
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.tls.load_cert_chain(CERTIFICATE, KEY)


class Mosquitto(Broker):
    """Mosquitto. `lines` are additional lines of Mosquitto's configuration."""

    def __init__(
        self, folder: Path, users: Sequence[str] = (USER,), access: str | None = None, *, lines: str = ""
    ) -> None:
        self._program = need("mosquitto")
        self.port, self.tls_port = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._config = folder / "mosquitto.conf"
        for name in users:
            create = ["-c"] if name == users[0] else []
            command = [need("mosquitto_passwd"), "-b", *create, str(folder / "passwords"), name, PASSWORD]
            subprocess.run(command, check=True, capture_output=True)
        if access is not None:
            (folder / "access").write_text(access)
            lines += f"acl_file {folder / 'access'}\n"
        user = "user root\n" if os.geteuid() == 0 else ""
        self._config.write_text(
            f"{user}per_listener_settings false\nallow_anonymous false\npassword_file {folder / 'passwords'}\n"
            f"persistence false\nlog_type none\nlistener {self.port} 127.0.0.1\n{lines}"
            f"listener {self.tls_port} 127.0.0.1\ncertfile {CERTIFICATE}\nkeyfile {KEY}\n"
        )

    async def start(self) -> None:
        self._launch()
        for _ in range(500):
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.tls_port)
                writer.close()
                return
            await asyncio.sleep(0.02)
        self.stop()
        raise AssertionError("mosquitto does not listen")

    def _launch(self) -> None:
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen([self._program, "-c", self._config], stdout=quiet, stderr=quiet)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(20)
            self._process = None


KINDS: dict[str, type[OwnBroker | Mosquitto]] = {"own": OwnBroker, "mosquitto": Mosquitto}


@contextlib.asynccontextmanager
async def running(broker: Broker) -> AsyncIterator[Broker]:
    await broker.start()
    try:
        yield broker
    finally:
        await broker.close()
