"""The same file on arm64: Debian 12 and 13, emulated, with a simulated light on this machine's loopback."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from appliance.simulators.light import LightSimulator
from tests.firmware import walks as package
from tests.firmware.boxed import configure, started
from tests.firmware.rootfs import emulator, make_rootfs

pytestmark = pytest.mark.slow

BOXES = {"bookworm": "python3.11", "trixie": "python3.13"}
PROCESSOR = "cortex-a53"
"""What a Raspberry Pi 3 has; qemu's default processor makes newer Debians ten times slower."""


@contextmanager
def light() -> Iterator[LightSimulator]:
    """A simulated light with a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    simulator = LightSimulator()
    try:
        asyncio.run_coroutine_threadsafe(simulator.__aenter__(), loop).result(10)
        yield simulator
        asyncio.run_coroutine_threadsafe(simulator.__aexit__(None, None, None), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def command(root: Path, python: str, file: Path, *arguments: str) -> list[str | Path]:
    """How to run the file in a root file system of arm64."""
    interpreter: list[str | Path] = [root / "usr/bin" / python]
    if platform.machine() != "aarch64":
        interpreter = [emulator(), "-cpu", PROCESSOR, "-L", root, *interpreter]
    return [*interpreter, "-I", "-S", file, *arguments]


def walks() -> list[ModuleType]:
    """Everything that a box is put through."""
    names = sorted(each.name for each in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


@pytest.mark.parametrize("suite", BOXES)
def test_it_works_persists_and_comes_back_with_its_state(suite: str, single_file: Path, tmp_path: Path) -> None:
    root = make_rootfs("arm64", suite, [BOXES[suite], "ca-certificates"])
    (tmp_path / "data").mkdir()
    run = command(root, BOXES[suite], single_file, "run")
    with light() as lamp:
        configure(tmp_path, lamp.url)
        for walk in walks():
            walk.prepare(tmp_path)
        with started(run, tmp_path, {}) as box:
            assert box.ask("GET", "/health") == (200, {"status": "ok"})
            for walk in walks():
                walk.first(box, lamp)
            assert box.stop() == 0
        with started(run, tmp_path, {}) as box:
            for walk in walks():
                walk.again(box, lamp)
            assert box.stop() == 0
