"""The scenarios for all boxes, with a simulated light on loopback, before and after a restart."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from appliance.adapters.elgato_lights.simulator import LightSimulator
from tests.firmware import scenarios as package
from tests.firmware.boxed import configure, started


def put_through(run: Sequence[str | Path], folder: Path) -> None:
    """Start the hub in the folder, run all scenarios, restart the hub, and check that nothing changed."""
    (folder / "data").mkdir()
    with light() as lamp:
        configure(folder, lamp.url)
        for scenario in scenarios():
            scenario.prepare(folder)
        with started(run, folder, {}) as box:
            assert box.ask("GET", "/health") == (200, {"status": "ok"})
            for scenario in scenarios():
                scenario.first(box, lamp)
            assert box.stop() == 0
        with started(run, folder, {}) as box:
            for scenario in scenarios():
                scenario.again(box, lamp)
            assert box.stop() == 0


@contextmanager
def light() -> Iterator[LightSimulator]:
    """Provide a simulated light with its own thread."""
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


def scenarios() -> list[ModuleType]:
    names = sorted(each.name for each in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]
