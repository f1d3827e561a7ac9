"""Variables and timers over HTTP: set, seen by everybody, refused with a reason, there after a restart."""

from __future__ import annotations

import errno
from pathlib import Path

from tests.fakes.clock import VirtualClock
from tests.fakes.house import LARGE, READER, House, open_house
from tests.fakes.lua import automation, write
from tests.fakes.moody_disk import MoodyDisk
from tests.fakes.patience import until

SOURCE = "automation:x"


async def test_a_variable_is_set_read_told_and_removed_and_outlives_a_restart(tmp_path: Path) -> None:
    async with open_house(data_dir=tmp_path, adapters={}) as house:
        assert (await house.get("/variables")).json == []
        done = await house.ask("PUT", "/variables/home.mode", json={"value": {"who": ["a", 1, 2.5, True]}})
        assert (done.status, done.json) == (200, {"name": "home.mode", "value": {"who": ["a", 1, 2.5, True]}})
        await house.ask("PUT", "/variables/b", json={"value": False})
    async with open_house(data_dir=tmp_path, adapters={}) as house:
        assert [each["name"] for each in (await house.get("/variables", token=READER.text)).json] == [
            "b",
            "home.mode",
        ]
        assert (await house.get("/variables/b")).json == {"name": "b", "value": False}
        assert (await house.delete("/variables/b")).status == 204
        gone = await house.get("/variables/b")
        assert (gone.status, gone.json["code"]) == (404, "variable_not_found")
        assert (await house.delete("/variables/b")).status == 404


async def test_what_is_no_variable_is_refused() -> None:
    async with open_house(adapters={}) as house:
        for name, body in (("A", {"value": 1}), ("a%20b", {"value": 1}), ("x" * 65, {"value": 1}), ("a", {})):
            assert (await house.ask("PUT", f"/variables/{name}", json=body)).status == 400, name
        for value in (None, "x" * (16 << 10)):
            refused = await house.ask("PUT", "/variables/a", json={"value": value})
            assert (refused.status, refused.json["code"]) == (400, "invalid_value")
        assert (await house.ask("PUT", "/variables/a", data=LARGE)).status == 413
        assert (await house.ask("PUT", "/variables/a", json={"value": 1}, token=READER.text)).status == 403
        assert (await house.get("/variables/A")).status == 404


async def test_a_change_of_a_variable_sets_off_an_automation_that_waits_for_it(tmp_path: Path) -> None:
    trigger = "{ type = 'variable_change', name = 'mode', equals = 'away', id = 'gone' }"
    root = write(tmp_path, {"automations/away.lua": automation("away", trigger)})
    async with open_house(root=root, adapters={}) as house:
        shown = (await house.get("/automations/away")).json
        assert shown["triggers"] == [{"id": "gone", "type": "variable_change"}]
        assert (await house.get("/automations/away/next")).json == {"automation_id": "away", "next": []}
        assert (await house.get("/automations/none/next")).status == 404
        await house.ask("PUT", "/variables/mode", json={"value": "home"})
        await house.ask("PUT", "/variables/mode", json={"value": "away"})
        await until(lambda: house.hub.automations.figures()["ended"]["ok"])
        [entry] = (await house.get("/automations/away/history")).json["entries"]
        assert entry["trigger_payload"] == {
            "type": "variable_change",
            "name": "mode",
            "value": "away",
            "previous_value": "home",
            "trigger_id": "gone",
        }


async def start(house: House, name: str, secs: float) -> None:
    """Start a timer, as Lua does."""
    await house.hub.timers.start(name, secs, {"lamp": 1}, SOURCE)


async def test_timers_are_listed_and_cancelled_and_outlive_a_restart(tmp_path: Path) -> None:
    async with open_house(clock=VirtualClock(), data_dir=tmp_path, adapters={}) as house:
        await start(house, "off: desk", 600)
        await start(house, "b", 60)
    async with open_house(clock=VirtualClock(), data_dir=tmp_path, adapters={}) as house:
        reported = (await house.get("/timers")).json
        assert [each["name"] for each in reported] == ["b", "off: desk"]
        assert reported[1] == {"name": "off: desk", "due_at": "2026-01-01T12:10:00.000Z", "payload": {"lamp": 1}}
        assert (await house.delete("/timers/off%3A%20desk")).status == 204
        gone = await house.delete("/timers/off%3A%20desk")
        assert (gone.status, gone.json["code"]) == (404, "timer_not_found")


async def test_a_card_that_takes_nothing_answers_503_and_nothing_changes(tmp_path: Path) -> None:
    disk = MoodyDisk(tmp_path)
    async with open_house(clock=VirtualClock(), disk=disk, adapters={}) as house:
        await house.ask("PUT", "/variables/a", json={"value": 1})
        await start(house, "t", 600)
        disk.mood = errno.ENOSPC
        assert (await house.ask("PUT", "/variables/a", json={"value": 2})).status == 503
        assert (await house.delete("/variables/a")).status == 503
        assert (await house.delete("/timers/t")).status == 503
        disk.mood = None
        assert (await house.get("/variables/a")).json["value"] == 1
        assert [each["name"] for each in (await house.get("/timers")).json] == ["t"]
