"""A home with automations for all events of Matter devices, while the Matter server stops and returns."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.matter.kind import Matter
from tests.adapters.matter.recordings import RecordedServer, load
from tests.fakes.app import App, open_app
from tests.fakes.patience import until

pytestmark = pytest.mark.slow

DEVICES = ("uid-onoff:1", "uid-dimmer:1", "uid-color:1", "uid-plug:1", "uid-cover:1", "uid-lock:1", "uid-switch:1")
VALUES = ("power", "brightness", "color_temperature", "cover_position", "lock")

WATCHER = f"""
local triggers = {{}}
for _, device in ipairs({{ {", ".join(f'"{each}"' for each in DEVICES)} }}) do
  triggers[#triggers + 1] = {{ type = "device_event", device_id = "matter:" .. device }}
  for _, attribute in ipairs({{ {", ".join(f'"{each}"' for each in VALUES)} }}) do
    local trigger = {{ type = "device_state_change", device_id = "matter:" .. device, attribute = attribute }}
    triggers[#triggers + 1] = trigger
  end
end
return {{ id = "watcher", name = "Watcher", triggers = triggers, execute = function(ctx) end }}
"""


def _recording(name: str) -> list[dict[str, Any]]:
    """Return the recorded events. At the end, the plug is switched manually."""
    lines = load(name)
    end = max(at for at, each in enumerate(lines) if "'event': 'node_updated'" in str(each["msg"])[:40])
    lines = lines[: end + 1]
    reported = [each for each in lines if not _is_about_one_node(each["msg"]) and "code=None" not in str(each["msg"])]
    switched = {"event": "attribute_updated", "data": [4, "1/6/0", name == "outage"]}
    return [*reported, {"t": lines[-1]["t"] + 20, "dir": "in", "msg": switched}]


def _is_about_one_node(message: Any) -> bool:
    return isinstance(message, dict) and message.get("message_id", "1") != "1"


async def _runs(app: App) -> list[Any]:
    found = (await app.get("/automations/watcher/history")).json
    entries: list[Any] = found["entries"]
    return [(each["trigger_payload"]["device_id"], each["trigger_payload"].get("value")) for each in entries]


@pytest.mark.parametrize("name", ["outage", "restart"])
async def test_no_automation_runs_because_the_server_or_a_device_was_absent(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "config" / "automations"
    folder.mkdir(parents=True)
    (folder / "watcher.lua").write_text(WATCHER)
    switched = "on" if name == "outage" else "off"
    async with RecordedServer(_recording(name), pace=0.05) as server:
        adapters = {"matter": Matter(url=f"ws://127.0.0.1:{server.port}/ws")}
        async with open_app(adapters=adapters, root=tmp_path) as app:
            await until(lambda: not server.script, within=60)
            await until(lambda: app.hub.registry.get_device("matter:uid-plug:1").attributes["power"] == switched)
            async with asyncio.timeout(20):
                while not (found := await _runs(app)):  # noqa: ASYNC110 - no event to await
                    await asyncio.sleep(0.01)
            assert found == [("matter:uid-plug:1", switched)]
