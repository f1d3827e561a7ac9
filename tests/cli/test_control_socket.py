"""Tests for the file of the control socket."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from appliance.cli.process.control_socket import SOCKET, control_socket


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
        with control_socket(folder):
            replace(folder)
            folder.mkdir(exist_ok=True)
            bound = second.enter_context(control_socket(folder))
        assert bound is not None
        bound.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(folder / SOCKET))
    assert not (folder / SOCKET).exists()
