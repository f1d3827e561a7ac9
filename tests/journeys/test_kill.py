"""The hub is killed repeatedly while it processes changes. After each start, the hub has exactly the confirmed
changes."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight
from tests.cli.commands import asked
from tests.fakes.lua import automation, scene, write
from tests.fakes.process import Process, configure, light_section, running, spawn

WRITERS = 8
MAX_WRITER_KEYS = 20
MARGIN = "x" * 900
"""A long text that makes names long. Because of the long names, some kills happen during a compaction of the
journal."""


@dataclass(slots=True)
class Memory:
    """The possible values of one item: the last confirmed value, and any value that was requested without a
    response."""

    held: Any = None
    asked: list[Any] = field(default_factory=list)

    def may_be(self, found: Any) -> bool:
        """Return whether the hub may report this value after a start."""
        return found == self.held or found in self.asked

    def settle(self, found: Any) -> None:
        self.held, self.asked = found, []


class Writer:
    """Changes several kinds of items one after another, and remembers each response.

    The hub must refuse some of the requests, and the refused changes must never take effect.
    """

    def __init__(self, number: int) -> None:
        self.lamp = f"elgato_lights:light:{number}"
        self.home, self.guest, self.group = f"home-{number}", f"guest-{number}", f"group-{number}"
        self.automation, self.variable, self.timer = f"automation-{number}", f"variable_{number}", f"timer-{number}"
        things = (self.home, self.guest, self.group, self.lamp, self.automation, self.variable, self.timer)
        self.memories = {thing: Memory() for thing in things}
        self.acknowledged = self.refused = 0
        self._numbers = itertools.count()
        self._keys: list[tuple[str, str]] = []

    def files(self) -> dict[str, str]:
        """Return the automation that the test enables and disables, and the scene that starts a timer."""
        return {
            f"automations/{self.automation}.lua": automation(self.automation, "{ type = 'system_error' }"),
            f"scenes/{self.timer}.lua": scene(self.timer, f"ctx:start_timer('{self.timer}', 86400)"),
        }

    async def work(self, hub: Process) -> None:
        """Request changes until the hub ends."""
        try:
            while True:
                await self._round(hub)
        except (aiohttp.ClientError, ConnectionError):
            return

    async def _round(self, hub: Process) -> None:
        await self._put(hub, "/rooms", self.home, {"name": self._name()})
        await self._put(hub, "/rooms", self.guest, {"name": self._name()})
        await self._place(hub, self.home)
        members = [self.lamp] * (next(self._numbers) % 2)
        await self._put(hub, "/groups", self.group, {"name": self._name(), "members": members})
        await self._refuse(hub, 400, "/groups", id=f"refused-{self.group}", name="x", members=["nobody"])
        await self._refuse(hub, 400, "/rooms", id=f"refused-{self.home}")
        await self._refuse(hub, 400, f"/devices/{self.lamp}/room", room_id="nowhere")
        await self._place(hub, None)
        await self._remove(hub, "/rooms", self.guest)
        await self._remove(hub, "/groups", self.group)
        for is_enabled in (False, True):
            switch, path = {"enabled": is_enabled}, f"/automations/{self.automation}/enabled"
            await self._change(self.automation, None if is_enabled else "disabled", hub.ask("POST", path, switch))
        path, value = f"/variables/{self.variable}", self._name()
        await self._change(self.variable, value, hub.ask("PUT", path, {"value": value}))
        await self._change(self.timer, True, hub.ask("POST", f"/scenes/{self.timer}/execute", {}))
        await self._remove(hub, "/variables", self.variable)
        await self._remove(hub, "/timers", self.timer)
        await self._use_keys(hub)

    async def _use_keys(self, hub: Process) -> None:
        """Create two keys with different labels, and revoke the second. Also revoke the oldest of many keys."""
        for keys in (self._keys, []):
            label = f"key-{self.home}-{next(self._numbers)}"
            self.memories[label] = Memory()
            made = await self._change(label, True, hub.ask("POST", "/auth/keys", {"label": label, "role": "read"}))
            keys.append((label, made["id"]))
            if keys is not self._keys or len(keys) > MAX_WRITER_KEYS:
                label, id_ = keys.pop(0)
                await self._change(label, None, hub.ask("DELETE", f"/auth/keys/{id_}"))

    def _name(self) -> str:
        return f"{next(self._numbers)}{MARGIN}"

    async def _put(self, hub: Process, path: str, id_: str, fields: dict[str, Any]) -> None:
        await self._change(id_, fields, hub.ask("POST", path, {"id": id_, **fields}))

    async def _place(self, hub: Process, room: str | None) -> None:
        await self._change(self.lamp, room, hub.ask("POST", f"/devices/{self.lamp}/room", {"room_id": room}))

    async def _remove(self, hub: Process, path: str, id_: str) -> None:
        await self._change(id_, None, hub.ask("DELETE", f"{path}/{id_}"))

    async def _change(self, thing: str, expected: Any, asking: Awaitable[tuple[int, Any]]) -> Any:
        """Request a change, remember its response, and return the body."""
        memory = self.memories[thing]
        memory.asked.append(expected)
        status, body = await asking
        if status == 404 and expected is None:
            assert memory.held is None, (thing, body)
        else:
            assert status in (200, 204), (thing, status, body)
            self.acknowledged += 1
        memory.settle(expected)
        return body

    async def _refuse(self, hub: Process, status: int, path: str, **fields: Any) -> None:
        assert await hub.post(path, **fields) == status
        self.refused += 1


async def _look(hub: Process) -> dict[str, Any]:
    """Return all values that the writers could have changed."""
    await hub.ready()
    assert (
        await hub.post("/automations/reload") == 200
    )  # a hub in safe mode (after crashes) has not loaded its automations
    rooms = {each["id"]: {"name": each["name"]} for each in await hub.get("/rooms")}
    groups = {each["id"]: {"name": each["name"], "members": each["members"]} for each in await hub.get("/groups")}
    others = {
        **{each["id"]: each["room_id"] for each in await hub.get("/devices")},
        **{each["id"]: "disabled" for each in await hub.get("/automations") if each["status"] == "disabled"},
        **{each["name"]: each["value"] for each in await hub.get("/variables")},
        **{each["name"]: True for each in await hub.get("/timers")},
        **{each["label"]: True for each in await hub.get("/auth/keys")},
    }
    return {**rooms, **groups, **{thing: value for thing, value in others.items() if value is not None}}


def _check(found: dict[str, Any], writers: list[Writer]) -> None:
    """Check that no confirmed change is missing, and that all other values were requested."""
    memories = {thing: memory for writer in writers for thing, memory in writer.memories.items()}
    assert found.keys() <= memories.keys(), "something is there that was refused"
    for thing, memory in memories.items():
        assert memory.may_be(found.get(thing)), (thing, found.get(thing), memory)
        memory.settle(found.get(thing))


async def _kill_during_changes(hub: Process, writers: list[Writer], after: float) -> None:
    working = [asyncio.ensure_future(writer.work(hub)) for writer in writers]
    await asyncio.sleep(after)
    await hub.kill()
    await asyncio.gather(*working)


async def _kill_during_start(folder: Path, after: float) -> None:
    with spawn(folder, folder / "start.log") as popen:
        await asyncio.sleep(after)
        popen.kill()


@pytest.mark.parametrize(
    "kills",
    [2, pytest.param(8, marks=pytest.mark.slow), pytest.param(100, marks=[pytest.mark.slow, pytest.mark.release])],
)
async def test_no_confirmed_change_is_missing_after_kills_at_random_moments(kills: int, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    writers = [Writer(number) for number in range(WRITERS)]
    checked: list[int] = []
    print(f"seed {seed}")
    async with LightSimulator(lights=[SimulatedLight(temperature=213) for _ in writers]) as light:
        configure(tmp_path, light_section(light.url))
        write(tmp_path, {name: text for each in writers for name, text in each.files().items()})
        for number in range(kills + 1):
            async with running(tmp_path) as hub:
                _check(await _look(hub), writers)
                checked.append(sum(writer.acknowledged for writer in writers))
                store = await hub.store()
                assert store["last_recovery"]["lost_records"] == 0
                if number < kills:
                    await _kill_during_changes(hub, writers, moments.uniform(0.05 if kills >= 100 else 0.5, 0.8))
                else:
                    assert await hub.stop() == 0
            if number % 5 == 2:
                await _kill_during_start(tmp_path, moments.uniform(0.05, 0.5))
    refused = sum(writer.refused for writer in writers)
    print(
        f"{kills} kills: {checked[-1]} acknowledged changes checked, {refused} refused ones, "
        f"{store['generation']} generations"
    )
    assert checked[-1] >= 10 * kills
    assert refused > kills // 10
    assert kills < 100 or store["generation"] > 5, "the kill came upon compactions too"


AUTOMATION = """
return {
  id = "tick", name = "Tick", trigger = { type = "interval", every_secs = 3600 },
  execute = function(ctx) end,
}
"""


@pytest.mark.slow
async def test_three_crashes_start_safe_mode_and_a_reload_of_the_automations_ends_it(tmp_path: Path) -> None:
    configure(tmp_path)
    (tmp_path / "config" / "automations").mkdir()
    (tmp_path / "config" / "automations" / "tick.lua").write_text(AUTOMATION)
    for is_enabled in (False, True, False):
        async with running(tmp_path) as hub:
            assert len(await hub.get("/automations")) == 1
            await hub.ask("POST", "/automations/tick/enabled", {"enabled": is_enabled})
            await hub.kill()
    async with running(tmp_path) as hub:
        assert [(each["id"], each["status"]) for each in await hub.get("/automations")] == [("tick", "disabled")]
        status, body = await hub.ask("POST", "/automations/tick/enabled", {"enabled": True})
        assert (status, body["status"]) == (200, "enabled")
        assert (await hub.get("/automations/tick/next"))["next"] == [], "none is armed"
        safe = (await hub.get("/diagnostics"))["hub"]["safe"]
        assert safe.startswith("safe mode: the hub crashed three times") and safe in hub.log.read_text()
        assert safe in (await asked(tmp_path, "status")).out
        assert "warning store: the previous hub ended by a power cut" in hub.log.read_text()
        assert "lares_safe_mode 1" in await hub.text("/metrics")
        status, body = await hub.ask("POST", "/automations/reload")
        assert (status, body["status"], body["loaded_count"]) == (200, "ok", 1)
        assert [each["id"] for each in await hub.get("/automations")] == ["tick"]
        assert (await hub.get("/diagnostics"))["hub"]["safe"] is None
        assert await hub.stop() == 0
    async with running(tmp_path) as hub:
        assert len(await hub.get("/automations")) == 1, "a stop in order ends the series"
        assert "power cut" not in hub.log.read_text()
