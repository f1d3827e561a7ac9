"""A switched light reports the same state after a restart."""

from __future__ import annotations

from pathlib import Path

from appliance.adapters.elgato_lights.simulator import LightSimulator
from tests.firmware.boxed import LIGHT, Box

COMMANDS = (
    {"capability": "power", "action": "on"},
    {"capability": "brightness", "action": "set", "value": 42},
)


def prepare(folder: Path) -> None: ...


def first(box: Box, lamp: LightSimulator) -> None:
    box.shows(LIGHT, state="online", power="off")
    for command in COMMANDS:
        assert box.ask("POST", f"/devices/{LIGHT}/command", command) == (200, {"status": "ok"})
    box.shows(LIGHT, power="on", brightness=42)
    assert lamp.lights[0].brightness == 42


def again(box: Box, lamp: LightSimulator) -> None:
    """Check that the light still reports the same state."""
    box.shows(LIGHT, state="online", power="on", brightness=42)
