"""Rooms and their devices survive a restart."""

from __future__ import annotations

from pathlib import Path

from appliance.adapters.elgato_lights.simulator import LightSimulator
from tests.firmware.boxed import LIGHT, Box


def prepare(folder: Path) -> None: ...


def first(box: Box, lamp: LightSimulator) -> None:
    """Create a room with the light."""
    box.shows(LIGHT, state="online")
    assert box.ask("POST", "/rooms", {"id": "study", "name": "Study"})[0] == 200
    assert box.ask("POST", f"/devices/{LIGHT}/room", {"room_id": "study"})[0] == 200


def again(box: Box, lamp: LightSimulator) -> None:
    """Check that the room contains the light even before the light is polled."""
    assert box.ask("GET", "/rooms") == (200, [{"id": "study", "name": "Study"}])
    assert box.ask("GET", f"/devices/{LIGHT}")[1]["room_id"] == "study"
