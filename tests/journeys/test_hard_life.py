"""An hour of a hard life: kills, clock steps, faults of adapters and card, and floods together; the model holds."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.elgato_lights.simulator import LightSimulator
from tests.fakes.clock import VirtualClock
from tests.fakes.disk import Image, RecordingDisk, Refusal
from tests.fakes.house import LIGHT, House, open_house
from tests.store.cuts import durable

TROUBLES = 1000
STEP_SECS = 3.6
"""So much time passes with each trouble: an hour in all."""

BASE = "base"
"""The room that is never removed, in which the lamp may be."""

NAMES = [f"thing{number}" for number in range(40)]

Model = dict[str, str | None]
"""`room/<id>`, `group/<id>`, `name`, `place` to what was acknowledged; None for what is not there."""


class Life:
    """A hub on a disk, and what must be true of it: `known`, but for the keys in `open_` any of their values."""

    def __init__(
        self, house: House, disk: RecordingDisk, clock: VirtualClock, dice: random.Random, known: Model
    ) -> None:
        self.house, self.disk, self.clock, self.dice, self.known = house, disk, clock, dice, known
        self.open_: dict[str, set[str | None]] = {}
        self._numbers = itertools.count()

    async def change(self, key: str) -> None:
        """Ask for a change of the key, and learn from the answer."""
        value = None if self.dice.random() < 0.2 else f"{self.dice.random():.9f}"
        before = self.known.get(key)
        self.open_.setdefault(key, {before}).add(value)
        status = await self._ask(key, value)
        if status in (200, 204):
            self.known[key] = value
            self.open_.pop(key, None)
        else:
            assert status == 503 or (status == 404 and value is None and before is None), (key, status)

    async def _ask(self, key: str, value: str | None) -> int:
        kind, _, name = key.partition("/")
        if kind == "name":
            return (await self.house.post(f"/devices/{LIGHT}/name", {"name": value})).status
        if kind == "place":
            return (await self.house.post(f"/devices/{LIGHT}/room", {"room_id": value and BASE})).status
        if value is None:
            return (await self.house.delete(f"/{kind}s/{name}")).status
        return (await self.house.post(f"/{kind}s", {"id": name, "name": value})).status

    async def flood(self, count: int) -> None:
        """Many changes at once, each of another key."""
        keys = [f"room/{name}" for name in NAMES] + [f"group/{name}" for name in NAMES]
        await asyncio.gather(*(self.change(key) for key in self.dice.sample(keys, count)))

    async def present(self) -> Model:
        """What the hub shows."""
        rooms, groups = [(await self.house.get(path)).json for path in ("/rooms", "/groups")]
        found: Model = {f"room/{each['id']}": each["name"] for each in rooms if each["id"] != BASE}
        return found | {f"group/{each['id']}": each["name"] for each in groups}

    async def check(self, *, is_start: bool = False) -> None:
        """The hub shows what was acknowledged; at a start, also a change may count whose answer nobody got."""
        assert (await self.house.get("/health", token=None)).status == 200
        found = await self.present()
        for key in {*found, *self.known}:
            allowed = self.open_.get(key, set()) | {self.known.get(key)} if is_start else {self.known.get(key)}
            assert found.get(key) in allowed, (key, found.get(key), allowed)
        if is_start:
            self.known = found
            self.open_ = {}

    async def step_the_clock(self) -> None:
        """Somebody sets the clock."""
        self.clock.set(self.clock.now() + timedelta(seconds=self.dice.uniform(-2, 2) * 86_400))

    async def fail_the_adapter(self) -> None:
        """The lamp misbehaves from now on, or is well again."""
        faults = self.house.light.faults
        faults.status, faults.body, faults.drop = None, None, 0
        match self.dice.randrange(4):
            case 0:
                faults.status = self.dice.choice((404, 500, 503))
            case 1:
                faults.body = self.dice.choice((b"", b"nonsense", b"[]", b'{"lights": [{"on": "maybe"}]}'))
            case 2:
                faults.drop = 2

    async def fail_the_card(self) -> None:
        """The card refuses for a while, under changes; then it is well."""
        refusals: tuple[Refusal, ...] = ("ENOSPC", "EIO", "short")
        refusal, chance = self.dice.choice(refusals), self.dice.choice((0.3, 1.0))
        self.disk.fault = lambda index, operation: refusal if self.dice.random() < chance else None
        await self.flood(4)
        self.disk.fault = lambda index, operation: None

    async def flood_it(self) -> None:
        """Forty changes at once, and as many readers."""
        readers = [self.house.get("/devices") for _ in range(40)]
        await asyncio.gather(self.flood(40), *readers)

    async def trouble(self) -> None:
        """One trouble of any kind, and time."""
        kinds = (self.step_the_clock, self.fail_the_adapter, self.fail_the_card, self.flood_it)
        await self.dice.choice(kinds)()
        await self.clock.advance(STEP_SECS, sleepers=0)

    async def die(self) -> Image:
        """Be killed, or lose the power, in the middle of changes; what the disk holds then."""
        changing = asyncio.ensure_future(self.flood(20))
        for _ in range(self.dice.randrange(60)):
            await asyncio.sleep(0 if self.dice.random() < 0.7 else 0.001)
        image = self.disk.image() if self.dice.random() < 0.5 else durable(self.disk)
        answered = dict(self.known), {key: set(values) for key, values in self.open_.items()}
        await changing
        self.known, self.open_ = answered
        return image


def lives(dice: random.Random) -> Iterable[int]:
    """How many troubles each life has; each ends with a kill, which is one more."""
    left = TROUBLES
    while left > 0:
        count = min(left, dice.randrange(2, 15))
        left -= count + 1
        yield count


@pytest.mark.slow
async def test_a_thousand_troubles_in_an_hour_leave_the_home_as_the_model_has_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dice, clock, image = random.Random(2026), VirtualClock(), None
    known: Model = {}
    open_: dict[str, Any] = {}
    for number, count in enumerate(lives(dice)):
        disk = RecordingDisk(image)
        disk.folder = tmp_path
        async with open_house(clock=clock, light=LightSimulator(), disk=disk) as house:
            life = Life(house, disk, clock, dice, known)
            life.open_ = open_
            await life.check(is_start=True)
            if number == 0:
                await house.post("/rooms", {"id": BASE, "name": "Base"})
            for _ in range(count):
                await life.trouble()
                await life.check()
            image = await life.die()
            known, open_ = life.known, life.open_
    unforeseen = [each for each in caplog.records if each.levelno >= logging.ERROR and each.exc_info]
    assert not unforeseen, [each.getMessage() for each in unforeseen]
