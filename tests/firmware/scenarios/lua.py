"""A scene dims the light, and an automation reacts by making the light brighter. A disabled automation remains
disabled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from appliance.adapters.elgato_lights.simulator import LightSimulator
from tests.fakes.lua import write
from tests.firmware.boxed import LIGHT, Box

FILES = {
    "scenes/dim.lua": f"""
return {{
  id = "dim",
  name = "Dim",
  execute = function(ctx)
    ctx:command("{LIGHT}", {{ capability = "brightness", action = "set", value = 7 }})
  end,
}}
""",
    "automations/brighten.lua": f"""
local bright = require "levels"
return {{
  id = "brighten",
  name = "Brighten",
  trigger = {{ type = "device_state_change", device_id = "{LIGHT}", attribute = "brightness", below = 10 }},
  execute = function(ctx, event)
    ctx:command(event.device_id, {{ capability = "brightness", action = "set", value = bright.usual }})
  end,
}}
""",
    "scripts/levels.lua": "return { usual = 42 }\n",
}


def prepare(folder: Path) -> None:
    write(folder, FILES)


def first(box: Box, lamp: LightSimulator) -> None:
    """Run the scene, wait until the automation has reacted, and then disable the automation."""
    assert box.ask("POST", "/scenes/dim/execute")[0] == 200
    history = box.until("/automations/brighten/history", lambda status, body: status == 200 and body["entries"])
    assert [(entry["status"], entry["error"]) for entry in history["entries"]] == [("ok", None)]
    box.shows(LIGHT, brightness=42)
    assert box.ask("POST", "/automations/brighten/enabled", {"enabled": False})[0] == 200


def again(box: Box, lamp: LightSimulator) -> None:
    """Check that the scene exists and the automation is disabled."""
    found: Any = box.ask("GET", "/automations")[1]
    assert [(each["id"], each["status"]) for each in found] == [("brighten", "disabled")]
    assert [each["id"] for each in box.ask("GET", "/scenes")[1]] == ["dim"]
