"""A hard hour, in which kills, clock changes, faults of adapters and card, and floods happen at the same time. The
model remains correct."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.elgato_lights.simulator import LightSimulator
from tests.fakes.app import LIGHT, App, open_app
from tests.fakes.clock import START, VirtualClock
from tests.fakes.disk import Image, RecordingDisk, Refusal
from tests.store.cuts import durable

TROUBLES = 1000
STEP_SECS = 4.0
"""Seconds that pass with each trouble. In total, more than an hour passes."""

BASE = "base"
"""A room that is never removed and that can contain the lamp."""

KEYS = [f"{kind}/thing{number}" for kind in ("room", "group", "variable") for number in range(30)]
NEVER_GONE = ("name", "place")
"""Keys of the lamp that always have a value: a name, and a room or null."""

Values = dict[str, str | None]
"""Values by `room/<id>`, `group/<id>`, `variable/<id>`, `name`, and `place`. If an item does not exist, there is
no key for it."""


@dataclass(slots=True)
class Model:
    """The expected home: `known`. After a restart, the values of keys in `unanswered` may differ."""

    known: Values = field(default_factory=dict)
    unanswered: dict[str, set[str | None]] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    """Keys of unanswered changes. Only one change per key is requested at a time, because the order of two
    unanswered changes would be unknown."""

    def copy(self) -> Model:
        """Return a copy of the model for a hub that is killed now and loses its pending responses."""
        return Model(dict(self.known), {key: set(values) for key, values in self.unanswered.items()})

    def check(self, found: Values, *, is_start: bool) -> None:
        """Compare the model with the values of a hub. After a restart, the values may include unconfirmed changes.
        The model is updated with these changes."""
        for key in {*found, *self.known}:
            unanswered = self.unanswered.get(key, set()) if is_start else set[str | None]()
            allowed = {self.known.get(key), *unanswered}
            assert found.get(key) in allowed, (key, found.get(key), allowed)
        if is_start:
            self.known, self.unanswered = found, {}


class Life:
    def __init__(self, app: App, disk: RecordingDisk, clock: VirtualClock, dice: random.Random, model: Model) -> None:
        self.app, self.disk, self.clock, self.dice, self.model = app, disk, clock, dice, model
        self.counts: Counter[str] = Counter()
        self._lamp = asyncio.Lock()

    async def change(self, key: str) -> int:
        """Request a change of the key, update the model from the response, and return the status."""
        model = self.model
        value = None if self.dice.random() < 0.2 and key != "name" else f"{self.dice.random():.9f}"
        if key == "place":
            value = value and BASE
        before = model.known.get(key)
        model.unanswered.setdefault(key, {before}).add(value)
        status = await self._ask(key, value)
        model.asked.remove(key)
        if status in (200, 204):
            model.known[key] = value
            model.unanswered.pop(key, None)
        else:
            assert status == 503 or (status == 404 and value is None and before is None), (key, status)
        return status

    async def _ask(self, key: str, value: str | None) -> int:
        kind, _, name = key.partition("/")
        match kind:
            case "name":
                method, path, body = "POST", f"/devices/{LIGHT}/name", {"name": value}
            case "place":
                method, path, body = "POST", f"/devices/{LIGHT}/room", {"room_id": value}
            case _ if value is None:
                return (await self.app.delete(f"/{kind}s/{name}")).status
            case "variable":
                method, path, body = "PUT", f"/variables/{name}", {"value": value}
            case _:
                method, path, body = "POST", f"/{kind}s", {"id": name, "name": value}
        return (await self.app.ask(method, path, json=body)).status

    async def flood(self, count: int) -> list[int]:
        free = [key for key in (*KEYS, *NEVER_GONE) if key not in self.model.asked]
        chosen = self.dice.sample(free, min(count, len(free)))
        self.model.asked.update(chosen)
        return await asyncio.gather(*map(self.change, chosen))

    async def switch_the_lamp(self) -> None:
        """Switch the lamp. If the hub confirms the command, the lamp must have switched."""
        async with self._lamp:
            action = self.dice.choice(("on", "off"))
            status = (await self.app.command(LIGHT, "power", action)).status
            assert status in (200, 400), status
            assert status == 400 or self.app.light.lights[0].on == (action == "on")

    async def check(self, *, is_start: bool = False) -> None:
        """Check that the hub returns the values of the model."""
        assert (await self.app.get("/health", token=None)).status == 200
        shown = {kind: (await self.app.get(f"/{kind}s")).json for kind in ("room", "group")}
        found: Values = {
            f"{kind}/{each['id']}": each["name"]
            for kind, every in shown.items()
            for each in every
            if each["id"] != BASE
        }
        found |= {f"variable/{each['name']}": each["value"] for each in (await self.app.get("/variables")).json}
        lamp = await self.app.device(LIGHT)
        self.model.check(found | {"name": lamp["name"], "place": lamp["room_id"]}, is_start=is_start)

    async def step_the_clock(self) -> None:
        """Change the clock by up to a year while work is in progress."""
        await asyncio.sleep(0)
        self.clock.set(START + timedelta(days=self.dice.uniform(0, 400)))

    async def fail_the_adapter(self) -> None:
        """Make the lamp fail or recover, and switch it."""
        await self._heal_the_lamp()
        faults = self.app.light.faults
        match self.dice.randrange(6):
            case 0:
                faults.status = self.dice.choice((404, 500, 503))
            case 1:
                faults.body = self.dice.choice((b"", b"nonsense", b"[]", b'{"lights": [{"on": "maybe"}]}'))
            case 2:
                faults.drop = 2
            case 3:
                await self.app.light.unplug()
            case 4:
                faults.stubborn = True
        await self.switch_the_lamp()

    async def fail_the_card(self) -> None:
        """Make the card refuse some or all writes, or make it recover. At the same time, request changes."""
        refusals: tuple[Refusal, ...] = ("ENOSPC", "EIO", "EROFS", "short")
        refusal, chance = self.dice.choice(refusals), self.dice.choice((0.0, 0.3, 1.0))
        self.disk.fault = lambda index, operation: refusal if self.dice.random() < chance else None
        await self.flood(4)

    async def flood_it(self) -> None:
        """Request forty changes, as many readings, and a command at once."""
        readers = [self.app.get("/devices") for _ in range(40)]
        await asyncio.gather(self.flood(40), self.switch_the_lamp(), *readers)

    async def trouble(self, most: int) -> None:
        """Cause one to four troubles at the same time, but at most `most`. Afterwards, advance the clock."""
        kinds = (self.step_the_clock, self.fail_the_adapter, self.fail_the_card, self.flood_it)
        chosen = self.dice.sample(kinds, min(most, self.dice.randint(1, len(kinds))))
        self.counts.update(each.__name__ for each in chosen)
        await self._while_time_passes(asyncio.gather(*(each() for each in chosen)))
        await self.clock.advance(len(chosen) * STEP_SECS, sleepers=0)

    async def recover(self) -> None:
        """Let lamp and card recover. Check that the hub stores changes again and reports the lamp."""
        await self._heal_the_lamp()
        self.disk.fault = lambda index, operation: None
        assert not {503} & set(await self.flood(4))
        pause = 0.001
        while not await self._shows_the_lamp():
            await self.clock.advance(1.0, sleepers=0)
            await asyncio.sleep(pause := min(1.5 * pause, 1.0))

    async def _shows_the_lamp(self) -> bool:
        shown = (await self.app.device(LIGHT))["attributes"]
        power = "on" if self.app.light.lights[0].on else "off"
        return (shown["state"], shown["power"]) == ("online", power)

    async def die(self) -> tuple[Image, Model]:
        """Kill the hub or cut the power during changes. Return the disk and the model."""
        self.counts["die"] += 1
        changing = asyncio.ensure_future(self.flood(20))
        for _ in range(self.dice.randrange(60)):
            await asyncio.sleep(0 if self.dice.random() < 0.7 else 0.001)
        image = self.disk.image() if self.dice.random() < 0.5 else durable(self.disk)
        model = self.model.copy()
        await changing
        return image, model

    async def _heal_the_lamp(self) -> None:
        faults = self.app.light.faults
        faults.status, faults.body, faults.drop, faults.stubborn = None, None, 0, False
        await self.app.light.plug_in()

    async def _while_time_passes(self, work: asyncio.Future[Any] | Coroutine[Any, Any, Any]) -> None:
        """Do the work while the clock advances, because the work's time limits depend on the clock."""
        task, pause = asyncio.ensure_future(work), 0.005
        while not (await asyncio.wait({task}, timeout=pause))[0]:
            await self.clock.advance(0.25, sleepers=0)
            pause = min(1.3 * pause, 0.2)
        await task


@pytest.mark.slow
@pytest.mark.release
async def test_after_a_thousand_faults_in_an_hour_the_home_equals_the_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    dice, clock, image, model, counts = random.Random(2026), VirtualClock(), None, Model(), Counter[str]()
    async with asyncio.timeout(1200):
        while counts.total() < TROUBLES:
            disk = RecordingDisk(image)
            disk.folder = tmp_path
            async with open_app(clock=clock, light=LightSimulator(), disk=disk) as app:
                life = Life(app, disk, clock, dice, model)
                if image is None:
                    await app.post("/rooms", {"id": BASE, "name": "Base"})
                    model.known = {"name": (await app.device(LIGHT))["name"]}
                await life.check(is_start=True)
                for _ in range(dice.randrange(1, 4)):
                    await life.trouble(most=TROUBLES - counts.total())
                    await life.check()
                if dice.random() < 0.3:
                    await life.recover()
                    await life.check()
                image, model = await life.die()
                counts += life.counts
            await clock.advance(STEP_SECS, sleepers=0)
    with capsys.disabled():
        print("\n", dict(counts), f"in {clock.monotonic():.0f} s")
    assert min(counts.values()) >= TROUBLES / 10 and clock.monotonic() >= 3600.0
    unforeseen = [each for each in caplog.records if each.levelno >= logging.ERROR and each.exc_info]
    assert not unforeseen, [each.getMessage() for each in unforeseen]
