"""Tests for the file of the control socket."""

from __future__ import annotations

import shutil
import socket
import stat
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest

from appliance.cli.process.control_socket import SOCKET, SOCKET_CHECK_SECS, ControlSocket, restore_missing
from appliance.tasks import Tasks
from tests.fakes.clock import VirtualClock


def move(folder: Path) -> None:
    folder.rename(folder.with_suffix(".old"))


REPLACEMENTS: dict[str, Callable[[Path], None]] = {
    "the folder is moved": move,
    "the folder is deleted": shutil.rmtree,
    "the socket is deleted": lambda folder: (folder / SOCKET).unlink(),
}


@pytest.mark.parametrize("replace", REPLACEMENTS.values(), ids=REPLACEMENTS.keys())
def test_a_stopping_hub_keeps_the_socket_of_another_hub(tmp_path: Path, replace: Callable[[Path], None]) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    with ExitStack() as second:
        with ControlSocket(folder):
            replace(folder)
            folder.mkdir(exist_ok=True)
            bound = second.enter_context(ControlSocket(folder)).bound
        assert bound is not None
        bound.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(folder / SOCKET))
    assert not (folder / SOCKET).exists()


class Restoring:
    """A control socket in the folder, which is checked on a virtual clock. `fault` is the fault of the folder."""

    def __init__(self, folder: Path) -> None:
        self.control = ControlSocket(folder)
        self.fault: OSError | None = None
        self.served: list[socket.socket] = []
        self._clock = VirtualClock()

    async def __aenter__(self) -> Restoring:
        self._stack = AsyncExitStack()
        self._stack.enter_context(self.control)
        assert self.control.bound is not None
        await self._serve(self.control.bound)
        tasks = await self._stack.enter_async_context(Tasks())
        tasks.start(restore_missing(self.control, self._serve, self._check_folder, self._clock), "check")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def check(self) -> None:
        await self._clock.advance(SOCKET_CHECK_SECS, sleepers=1)

    async def _check_folder(self) -> None:
        if self.fault is not None:
            raise self.fault

    async def _serve(self, bound: socket.socket) -> None:
        for each in self.served:
            each.close()
        self.served.append(bound)
        bound.listen()


async def test_a_deleted_socket_is_created_again_and_removed_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / SOCKET
    async with Restoring(tmp_path) as it:
        await it.check()
        assert len(it.served) == 1
        for count in (2, 3):
            file.unlink()
            await it.check()
            await it.check()
            assert len(it.served) == count and stat.S_IMODE(file.lstat().st_mode) == 0o600
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(file))
    assert not file.exists()


async def test_no_socket_is_created_in_the_folder_of_another_hub(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Restoring(tmp_path) as it:
        it.fault = OSError("the data directory was moved, replaced, or unmounted")
        (tmp_path / SOCKET).unlink()
        for _ in range(3):
            await it.check()
            assert it.control.is_missing
        assert caplog.text.count("was moved, replaced, or unmounted") == 1
        it.fault = None
        await it.check()
        assert not it.control.is_missing
