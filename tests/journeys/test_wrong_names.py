"""Each wrong name is reported with the same message in four places: the log, `why`, `check`, and `simulate`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.cli.commands import LOOPBACK, ended
from tests.fakes.app import App, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.lua import automation, scene, write

HOME = """
[notify]
targets = ["phone:sent"]
[adapters.phone]
type = "notify"
url = "http://127.0.0.1:9/"
[adapters.virtual]
devices = [
  { id = "lamp", kind = "Light", attributes = { power = "off", brightness = 5 } },
  { id = "hall door", class = "door", attributes = { contact = "closed", battery = 80 } },
  { id = "button", class = "button", attributes = { battery = 80 } },
]
"""
STATE, EVENT = 'type = "device_state_change"', 'type = "device_event"'
DOOR_REPORTS = (
    "it has sent nothing yet, but it has reported battery, contact; for attributes, use device_state_change"
)
TRIGGERS = {
    f'{STATE}, device_id = "virtual:lam"': "no such device; did you mean virtual:lamp?",
    f'{STATE}, device_id = "virtuel:lamp"': "no section [adapters.virtuel]; did you mean virtual:lamp?",
    f'{STATE}, device_id = "virtual:lamp", attribute = "power_consumption"': "it has reported brightness, power",
    f'{STATE}, device_id = "virtual:hall door", attribute = "power"': "never reported; it has reported battery",
    f'{STATE}, device_id = {{ "virtual:lamp", "virtual:button" }}, attribute = "brightness"': "has reported battery",
    f'{STATE}, room_id = "hal"': "no such room; did you mean hall?",
    f'{STATE}, room_id = "hall", attribute = "power"': "room 'hall' has reported; they have reported battery",
    f'{STATE}, group_id = "doors"': "no such group; did you mean door?",
    f'{STATE}, group_id = "door", attribute = "power"': "no device of group 'door' has reported; they have reported",
    'type = "weather_state", device_id = "virtual:button", attribute = "rainfall"': "it has reported battery",
    f'{EVENT}, device_id = "virtual:button", event = "singel"': "has never sent; did you mean single?",
    f'{EVENT}, device_id = "virtual:button", event = "hold"': "has never sent; it sends single",
    f'{EVENT}, device_id = "virtual:hall door", event = "open"': DOOR_REPORTS,
    f'{EVENT}, device_id = "virtual:hall door"': DOOR_REPORTS,
    f'{EVENT}, device_id = "virtual:lamp", event = "on"': "power; for attributes, use device_state_change",
    f'{EVENT}, room_id = "hall", event = "doubel"': "no device of room 'hall' has sent; they send single",
    f'{EVENT}, group_id = "door", event = "single"': "no device of group 'door' has sent; they have sent nothing yet",
    'type = "variable_change", name = "gone", equals = 1': "declare it with the comment --- @variable gone",
    'type = "variable_change", name = "mod"': "no such variable; did you mean mode?",
    'type = "timer", name = "landry"': "no such timer; did you mean laundry?",
    'type = "adapter_lifecycle", adapter = "virtul"': "no such adapter; did you mean virtual?",
    f'{EVENT}, device_id = "virtual:button", event = "single"': "",
    f'{EVENT}, room_id = "hall"': "",
    f'{STATE}, room_id = "hall", attribute = "contact"': "",
    f'{STATE}, room_id = "empty", attribute = "power"': "",
    f'{STATE}, device_id = "virtual:lamp", attribute = "state"': "",
}
CONDITIONS = {
    'type = "device_state", device_id = "virtual:lmp", attribute = "power", equals = "on"': "mean virtual:lamp",
    'type = "device_state", device_id = "virtual:lamp", attribute = "contact", equals = "open"': "reported bright",
    'type = "presence", device_id = "virtual:lamp"': "'presence', which device 'virtual:lamp' has never reported",
    'type = "room_state", room_id = "hell", min_devices = 1': "no such room; did you mean hall?",
    'type = "group_state", group_id = "dor", min_devices = 1': "no such group; did you mean door?",
    'type = "variable", name = "moed", equals = 1': "no such variable; did you mean mode?",
    'type = "any", conditions = { { type = "variable", name = "modee", equals = 1 } }': "did you mean mode?",
}
ON = '{ capability = "power", action = "on" }'
CALLS = {
    f'ctx:command("virtual:lampe", {ON})': "no such device; did you mean virtual:lamp?",
    'ctx:wait_for("virtual:buton", { attribute = "power", equals = "on", timeout_secs = 1 })': "mean virtual:button",
    f'ctx:command_room("hal", {ON})': "no such room; did you mean hall?",
    f'ctx:command_group("dorr", {ON})': "no such group; did you mean door?",
    'ctx:run_scene("evning")': "no such scene; did you mean evening?",
    'ctx:invoke("virtual:observ", {})': "no such operation; did you mean virtual:observe?",
    'local mode = ctx:get("moed")': "no such variable; did you mean mode?",
    'local mode = ctx:get("mode_at", 1)': "no such variable; did you mean mode?",
    'local far = ctx:get("gone", false)': "no such variable; if you set it yourself, declare it",
    'local other = { get = print } other:get("moed") ctx:get("mode") ctx:get("mo" .. "ed")': "",
}
TABLE = [
    *((f"{{ {trigger} }}", "", "", sentence) for trigger, sentence in TRIGGERS.items()),
    *(("", f"conditions = {{ {{ {condition} }} }}", "", sentence) for condition, sentence in CONDITIONS.items()),
    *(("", "", call, sentence) for call, sentence in CALLS.items()),
]
"""Each row: the trigger, the field, and the call of an automation, and the expected warning. If the expected warning
is empty, there must be no warning."""


@pytest.mark.slow
async def test_each_wrong_name_has_one_warning_everywhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hourly = "{ type = 'interval', every_secs = 3600 }"
    texts = {
        f"automations/a{number:02}.lua": automation(f"a{number:02}", trigger or hourly, call, more=more)
        for number, (trigger, more, call, _) in enumerate(TABLE)
    }
    sets = "ctx:set('mode', 1) ctx:start_timer('laundry', 60)"
    write(tmp_path, {**texts, "scenes/e.lua": scene("evening", sets), "default.toml": LOOPBACK + HOME})
    (tmp_path / "data").mkdir()
    clock = VirtualClock()
    wrong = [(f"a{number:02}", sentence) for number, (*_, sentence) in enumerate(TABLE) if sentence]
    async with open_app(root=tmp_path, data_dir=tmp_path / "data", toml=HOME, adapters=HOME, clock=clock) as app:
        await furnish(app)
        for number, (*_, sentence) in enumerate(TABLE):
            summary = (await app.get(f"/why?id=a{number:02}")).json["summary"]
            received = [each for each in summary if " names '" in each or " waits for events" in each]
            assert len(received) == bool(sentence) and sentence in "".join(received), TABLE[number]
        clock.suspend(61)
        caplog.clear()
        assert (await app.post("/automations/reload")).json["status"] == "ok"
        async with asyncio.timeout(20):
            while "phone:sent" not in caplog.text:  # noqa: ASYNC110 - it comes from a thread
                await asyncio.sleep(0.01)
        judge([record.getMessage() for record in caplog.records if record.levelname == "WARNING"], wrong)
    for command in (["check"], ["simulate", "--hours", "1"]):
        result = ended(tmp_path, *command)
        judge([line for line in (result.out + result.err).splitlines() if line.startswith("warning: ")], wrong)


def judge(lines: list[str], wrong: list[tuple[str, str]]) -> None:
    """Check the warnings: one line is about the targets of messages, and one line is about each automation."""
    assert sum("'phone:sent'" in line for line in lines) == 1 and len(lines) == len(wrong) + 1
    for id_, sentence in wrong:
        assert [sentence in line for line in lines if f"/{id_}.lua:" in line] == [True], (id_, sentence)


async def furnish(app: App) -> None:
    """Put the door and the button into the hall, and the door into a group. Press the button once, and remove a
    variable."""
    assert (await app.ask("PUT", "/variables/gone", json={"value": 1})).status == 200
    assert (await app.delete("/variables/gone")).status == 204
    for room in ("hall", "empty"):
        await app.post("/rooms", {"id": room, "name": room})
    for device in ("hall%20door", "button"):
        assert (await app.post(f"/devices/virtual:{device}/room", {"room_id": "hall"})).status == 200
    await app.post("/groups", {"id": "door", "name": "Door", "members": ["virtual:hall door"]})
    pressed = {"device_id": "virtual:button", "event": "single"}
    assert (await app.post("/adapters/virtual/operations/observe", pressed)).status == 200
