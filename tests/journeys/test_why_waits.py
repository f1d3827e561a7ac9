"""`why` of an automation reports that the device of a trigger is unreachable, that a wait is running, and for which
device the automation did not run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import LOOPBACK
from tests.fakes.app import open_app
from tests.fakes.lua import automation, scene, write
from tests.fakes.patience import until_async

HOME = """
[adapters.virtual]
devices = [{ id = "door", name = "Door", attributes = { contact = "closed" } }]
"""
TRIGGER = '{ type = "device_state_change", device_id = "virtual:door", attribute = "contact", equals = "open", %s }'


async def test_why_names_the_wait_and_an_unreachable_device(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "default.toml": LOOPBACK + HOME,
            "automations/wait.lua": automation("wait", TRIGGER % "duration_secs = 180"),
            "automations/other.lua": automation("other", TRIGGER % ""),
        },
    )
    (root / "data").mkdir()
    async with open_app(adapters=HOME, root=root, data_dir=root / "data", toml=HOME) as app:

        async def summary(id_: str) -> str:
            return "\n".join((await app.get(f"/why?id={id_}")).json["summary"])

        opened = {"device_id": "virtual:door", "attributes": {"contact": "open"}}
        assert (await app.post("/adapters/virtual/operations/observe", opened)).status == 200
        reported = await summary("wait")
        assert "'virtual:door' matches; the automation runs at 20" in reported, reported
        assert "must change first" not in reported, reported
        assert "must change first" in await summary("other")
        assert (await app.post("/devices/virtual:door/alias", {"alias": "front"})).status == 200
        assert "'front' matches; the automation runs at 20" in await summary("wait")
        app.hub.registry.set_state("virtual", "offline")
        assert "it is offline now (`lares why virtual:door`)" in await summary("other")


DETECTORS = """
[adapters.virtual]
devices = [
    { id = "attic", kind = "Sensor", class = "smoke", attributes = { smoke = false } },
    { id = "cellar", kind = "Sensor", class = "smoke", attributes = { smoke = false } },
]
"""


async def test_a_dropped_alarm_is_logged_and_explained_with_its_device(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = """return { id = "alarm", name = "Alarm", mode = "single",
        trigger = { type = "device_state_change", device_id = "*", attribute = "smoke", equals = true },
        execute = function(ctx) ctx:sleep(60) end }"""
    root = write(tmp_path, {"default.toml": LOOPBACK + DETECTORS, "automations/alarm.lua": text})
    (root / "data").mkdir()
    async with open_app(adapters=DETECTORS, root=root, data_dir=root / "data", toml=DETECTORS) as app:
        for room in ("attic", "cellar"):
            observed = {"device_id": f"virtual:{room}", "attributes": {"smoke": True}}
            assert (await app.post("/adapters/virtual/operations/observe", observed)).status == 200
        reason = "mode: the limit of mode single is 1; already running: 1"
        [warning] = [each for each in caplog.messages if "did not run" in each]
        assert warning.startswith(f"automation 'alarm' did not run for the alarm of virtual:cellar: {reason}; set ")

        async def is_explained() -> bool:
            answer = (await app.get("/why?id=alarm")).json
            return f"did not run (device_state_change of virtual:cellar): {reason}" in json.dumps(answer)

        await until_async(is_explained)


async def test_why_shortens_long_lists(tmp_path: Path) -> None:
    ids = ", ".join(f'"v:{number}"' for number in range(1_000))
    trigger = f'{{ type = "device_state_change", device_id = {{ {ids} }}, attribute = "contact" }}'
    triggers = ", ".join([trigger] * 17)
    text = f'return {{ id = "all", name = "All", triggers = {{ {triggers} }}, execute = function(ctx) end }}'
    root = write(tmp_path, {"automations/all.lua": text})
    async with open_app(root=root) as app:
        answer = await app.get("/why?id=all")
        stated = answer.json["automation"]["triggers"][0]
        assert stated["device_id"] == [f"v:{number}" for number in range(50)]
        assert stated["device_count"] == 1_000
        assert len(json.dumps(answer.json)) < 50_000


async def test_a_scene_and_an_automation_with_one_id_and_name_are_not_ambiguous(tmp_path: Path) -> None:
    trigger = '{ type = "webhook", hook = "a" }'
    files = {"automations/a.lua": automation("a", trigger, name="Bed"), "scenes/a.lua": scene("a", name="Bed")}
    async with open_app(root=write(tmp_path, files)) as app:
        assert (await app.get("/why?id=bed")).json["id"] == "a"


async def test_why_names_the_pause_of_an_automation_that_triggers_itself(tmp_path: Path) -> None:
    body = 'ctx:set("loop", event.value + 1)'
    trigger = '{ type = "variable_change", name = "loop" }'
    async with open_app(root=write(tmp_path, {"automations/loop.lua": automation("loop", trigger, body)})) as app:

        async def is_paused() -> bool:
            summary = (await app.get("/why?id=loop")).json["summary"]
            return any("s more, because it triggered itself too often" in each for each in summary)

        assert not await is_paused()
        await app.ask("PUT", "/variables/loop", json={"value": 1})
        await until_async(is_paused)
