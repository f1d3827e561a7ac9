"""Files, and changes of file, on the way of an event through Lua to a lamp, and of a REST command to a lamp."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from appliance.home.model import Device, Observation, Report
from benchmarks._frame import Row, Sample
from benchmarks._processes import ROOT
from tests.fakes.app import LIGHT, TV, open_app
from tests.fakes.lua import write

PACKAGE = str(ROOT / "appliance")
SIMULATORS = ("simulator.py", "simulated.py")
AUTOMATION = f"""
return {{
  id = "follow", name = "Follow",
  trigger = {{ type = "device_state_change", device_id = "{TV}", attribute = "power" }},
  execute = function(ctx, event)
    ctx:command("{LIGHT}", {{ capability = "power", action = event.value }})
  end,
}}
"""
TARGETS = {"an event → Lua → lamp": (50, 350), "a REST command": (38, 150)}
"""Files, and changes of file, at most."""


class Profile:
    """The files of `appliance/` whose functions were called, in order, without repetition in a row.

    Those of the simulators do not count: they are the device, which stands in this process.
    """

    def __init__(self) -> None:
        self.passed: list[str] = []

    def __call__(self, frame: Any, event: str, _: Any) -> None:
        """What `sys.setprofile` calls."""
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(PACKAGE) or file.endswith(SIMULATORS):
            return
        if not self.passed or self.passed[-1] != file:
            self.passed.append(file)


def measure(_rounds: int) -> Iterator[Sample]:
    """The second of each, in a hub of this process with nothing else to do."""
    for (what, (files, changes)), passed in zip(TARGETS.items(), asyncio.run(_measure()), strict=True):
        yield Row(label=f"{what}: files", at_most=files).sample(len(set(passed)))
        yield Row(label=f"{what}: changes of file", at_most=changes).sample(len(passed))


async def _measure() -> tuple[list[str], list[str]]:
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder:
        write(Path(folder), {"automations/follow.lua": AUTOMATION})
        async with open_app(root=Path(folder), poll_interval_secs=3600) as app:

            async def command(action: str) -> None:
                answer = await app.command(LIGHT, "power", action)
                assert answer.status == 200, answer

            async def event(action: str) -> None:
                app.hub.registry.apply(_report(app.hub.registry.get_device(TV), action))
                await asyncio.sleep(1)

            return await _profiled(event), await _profiled(command)


async def _profiled(act: Callable[[str], Awaitable[None]]) -> list[str]:
    for action in ("off", "on", "off"):
        await act(action)
    profile = Profile()
    sys.setprofile(profile)
    try:
        await act("on")
    finally:
        sys.setprofile(None)
    return profile.passed


def _report(device: Device, power: str) -> Report:
    seen = Observation(
        device_id=device.id,
        kind=device.kind,
        attributes={**device.attributes, "power": power},
        vendor_specific=device.metadata.vendor_specific,
    )
    return Report(adapter="roku_tv", present=frozenset({device.id}), observations=(seen,))
