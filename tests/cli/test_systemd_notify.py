"""The hub sends messages to systemd only if systemd started it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.cli.process.notifier import Notifier
from tests.fakes.clock import VirtualClock
from tests.fakes.patience import until
from tests.fakes.process import PYTHONPATH, configure, running
from tests.fakes.rows import each_row


class NotifySocket:
    """A receiver of messages for systemd, at a path or an abstract name."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.bind(address)

    def received(self) -> list[str]:
        """Return all messages since the last call."""
        messages = []
        while True:
            try:
                messages.append(self.socket.recv(4096).decode())
            except BlockingIOError:
                return messages


@pytest.fixture
def notify_socket(tmp_path: Path) -> Iterator[NotifySocket]:
    """Provide a socket `notify` in the folder."""
    notify_socket = NotifySocket(str(tmp_path / "notify"))
    yield notify_socket
    notify_socket.socket.close()


def test_each_state_is_one_message(notify_socket: NotifySocket, tmp_path: Path) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")}, VirtualClock())
    notifier.ready()
    notifier.reloading()
    notifier.ready()
    notifier.stopping()
    assert notify_socket.received() == ["READY=1", "RELOADING=1\nMONOTONIC_USEC=0", "READY=1", "STOPPING=1"]


def test_an_abstract_socket_name_works_too() -> None:
    name = f"lares-test-{os.getpid()}"
    notify_socket = NotifySocket(f"\0{name}")
    Notifier({"NOTIFY_SOCKET": f"@{name}"}, VirtualClock()).ready()
    assert notify_socket.received() == ["READY=1"]
    notify_socket.socket.close()


@each_row("environment", [{}, {"NOTIFY_SOCKET": "/nowhere/at/all"}, {"NOTIFY_SOCKET": ""}])
def test_without_a_socket_nothing_happens(environment: dict[str, str]) -> None:
    Notifier(environment, VirtualClock()).ready()


async def test_the_watchdog_is_notified_twice_per_period(notify_socket: NotifySocket, tmp_path: Path) -> None:
    clock = VirtualClock()
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "30000000"}
    notifying = asyncio.ensure_future(Notifier(environment, clock).feed_watchdog())
    await clock.advance(60.0, sleepers=1)
    notifying.cancel()
    assert notify_socket.received() == ["WATCHDOG=1"] * 5


@pytest.mark.parametrize(
    "environment", [{}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "9", "WATCHDOG_PID": "1"}]
)
async def test_without_a_watchdog_no_message_is_sent(
    notify_socket: NotifySocket, tmp_path: Path, environment: dict[str, str]
) -> None:
    await Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify"), **environment}, VirtualClock()).feed_watchdog()
    assert notify_socket.received() == []


BROKEN_ONCE = """
from appliance.lua.files import catalog

reload = catalog.Catalog.reload
calls = []


async def broken(self):
    calls.append(self)
    if len(calls) == 1:
        raise RuntimeError("deliberate")
    return await reload(self)


catalog.Catalog.reload = broken
"""
"""A module that Python imports at startup. The module makes the first reload of a catalog fail."""


@pytest.mark.slow
async def test_an_exception_in_one_reload_affects_neither_the_next_nor_systemd(
    notify_socket: NotifySocket, tmp_path: Path
) -> None:
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "sitecustomize.py").write_text(BROKEN_ONCE)
    configure(tmp_path)
    scenes = tmp_path / "config" / "scenes"
    scenes.mkdir()
    address, path = str(tmp_path / "notify"), f"{tmp_path / 'python'}{os.pathsep}{PYTHONPATH}"
    async with running(tmp_path, {"NOTIFY_SOCKET": address, "PYTHONPATH": path}) as hub:
        await hub.ready()
        (scenes / "a.lua").write_text('return { id = "a", name = "A", execute = function(ctx) end }')
        received: list[str] = []

        def listen() -> list[str]:
            received.extend(notify_socket.received())
            return received

        async def reload(sentence: str) -> None:
            notify_socket.received()
            hub.popen.send_signal(signal.SIGHUP)
            received.clear()
            await until(lambda: "READY=1" in listen())
            assert received[0].startswith("RELOADING=1") and sentence in hub.log.read_text()

        await until(lambda: "READY=1" in notify_socket.received())
        await reload("deliberate")
        assert await hub.get("/scenes") == []
        await reload("scenes reloaded loaded=1")
        assert [each["id"] for each in await hub.get("/scenes")] == ["a"]
        assert await hub.stop() == 0
