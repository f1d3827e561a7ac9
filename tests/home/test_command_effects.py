"""Commands have the same effects on virtual devices and on simulated devices."""

from __future__ import annotations

from typing import Any

from appliance.home.command_effects import changes_of
from appliance.home.commands import Command
from tests.fakes.rows import each_row


def _kelvin(value: int) -> dict[str, Any]:
    return {"value": value, "unit": "kelvin"}


WARM, HOT = {"color_temperature": _kelvin(3000)}, {"color_temperature": _kelvin(3500)}
MIRED = {"color_temperature": {"value": 250, "unit": "mireds"}}
ENERGY = {"unit": "kWh", "period": "total"}
HUE = {"hue": 1, "saturation": 2}
STEP = _kelvin(500)
EMPTY = {"value": 0, **ENERGY}


@each_row(
    ("command", "shown", "changes"),
    [
        (("power", "toggle", None), {"power": "on"}, {"power": "off"}),
        (("power", "toggle", None), {}, {"power": "on"}),
        (("brightness", "increase", 30), {"brightness": 90}, {"brightness": 100}),
        (("brightness", "decrease", 30), {}, {}),
        (("color_temperature", "increase", STEP), WARM, HOT),
        (("color_temperature", "decrease", STEP), MIRED, HOT),
        (("color_temperature", "increase", STEP), {}, {}),
        (("energy_total", "reset", None), {"energy_total": {"value": 7, **ENERGY}}, {"energy_total": EMPTY}),
        (("energy_total", "reset", None), {}, {}),
        (("color_hs", "set", HUE), {"color_mode": "xy"}, {"color_hs": HUE, "color_mode": "hs"}),
        (("garage_door", "stop", None), {"garage_door": "opening"}, {"garage_door": "stopped"}),
        (("garage_door", "open", None), {"garage_door": "closed"}, {"garage_door": "open"}),
        (("media_playback", "next", None), {"media_playback": "playing"}, {"media_playback": "playing"}),
        (("media_playback", "next", None), {}, {}),
    ],
)
def test_a_command_changes_its_attribute(command: Any, shown: dict[str, Any], changes: dict[str, Any]) -> None:
    capability, action, value = command
    assert changes_of(Command(capability=capability, action=action, value=value), shown) == changes
