"""The bundled modules: the commands that they send, within the range of each device."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from appliance.lua.running.worker_pool import WorkerPool
from tests.fakes.clock import VirtualClock
from tests.lua.bench import Notes, open_pool, run

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCRIPTS = Path(__file__).parents[2] / "config" / "scripts"


def _spec(capability: str, *actions: str, values: tuple[str, ...] = (), **narrowed: Any) -> dict[str, Any]:
    return {"capability": capability, "actions": actions, "schema": {"type": "x", "values": values, **narrowed}}


POWER = _spec("power", "on", "off", "toggle")
BRIGHTNESS = _spec("brightness", "set", min=5, max=100)
WARMTH = _spec("color_temperature", "set", min=2900, max=7000, unit="kelvin")
MIREDS = _spec("color_temperature", "set", min=153, max=370, unit="mireds")
TARGET = _spec("target_temperature", "set", min=7, max=28, step=0.5, unit="°C")
MODES = _spec("hvac_mode", "set", values=("off", "heat"))


class Home(Notes):
    """Devices that execute commands at once, unless they are `stubborn`. `commanded` contains the commands as
    short texts."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.devices: dict[str, dict[str, Any]] = {}
        self.variables: dict[str, Any] = {}
        self.commanded: list[str] = []
        self.stubborn: set[str] = set()
        self.by_hand: dict[int, str] = {}
        self.sleeps: list[float] = []

    def add(self, id_: str, *commands: dict[str, Any], kind: str = "Light", **attributes: Any) -> None:
        shown = {"state": "online", **attributes}
        self.devices[id_] = {"id": id_, "kind": kind, "attributes": shown, "commands": list(commands)}

    def answer(self, operation: str, arguments: Any) -> Any:
        """Return the answer to a call of `ctx`."""
        match operation, list(arguments):
            case "get_device", [id_, *_]:
                return self.devices.get(id_)
            case "list_devices", _:
                return list(self.devices.values())
            case "get", [name, *_]:
                return self.variables.get(name)
            case "set", [name, value, *_]:
                self.variables[name] = value
            case "sleep", [secs, *_]:
                self.sleeps.append(secs)
                if (id_ := self.by_hand.get(len(self.sleeps))) is not None:
                    self.devices[id_]["attributes"]["power"] = "off"
            case "command", [id_, command, *_]:
                return self._command(id_, command)
        return None

    def _command(self, id_: str, command: dict[str, Any]) -> dict[str, str]:
        action, value = command["action"], command.get("value")
        shown = value["value"] if isinstance(value, dict) else value
        self.commanded.append(" ".join(str(each) for each in (id_, command["capability"], shown or action)))
        if id_ in self.stubborn:
            return {"status": "error", "message": "no"}
        self.devices[id_]["attributes"][command["capability"]] = action if value is None else value
        return {"status": "ok"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[WorkerPool]:
    """Provide a pool with the bundled scripts."""
    async with open_pool(scripts=SCRIPTS) as opened:
        yield opened


async def play(pool: WorkerPool, home: Home, module: str, body: str) -> list[str]:
    await run(pool, f"local {module} = require('{module}')\n{body}", home)
    return home.printed


def lamps() -> Home:
    """Return four lamps: `a` is off, `b` is on at 50 %, `c` is on and can only be switched, and `d` is off and
    reports its colour temperature in mireds."""
    home = Home()
    home.add("a", POWER, BRIGHTNESS, WARMTH, power="off", brightness=20)
    home.add("b", POWER, BRIGHTNESS, power="on", brightness=50)
    home.add("c", POWER, power="on")
    home.add("d", POWER, MIREDS, power="off")
    return home


LIGHTS = (
    ("lights.on(ctx, 'a')", "a power on"),
    ("lights.on(ctx, 'b')", ""),
    (
        "lights.on(ctx, 'a', { brightness = 40, kelvin = 3000 })",
        "a brightness 40|a color_temperature 3000|a power on",
    ),
    ("lights.on(ctx, 'a', { brightness = 1, kelvin = 100 })", "a brightness 5|a color_temperature 2900|a power on"),
    ("lights.on(ctx, 'c', { brightness = 40, kelvin = 3000 })", ""),
    ("lights.on(ctx, 'd', { kelvin = 2500 })", "d color_temperature 370|d power on"),
    ("lights.on(ctx, { 'a', 'gone', 'b' })", "a power on"),
    ("lights.on(ctx, lights.find(ctx), { brightness = 9 })", "a brightness 9|a power on|b brightness 9|d power on"),
    ("lights.off(ctx, { 'a', 'b', 'c' })", "b power off|c power off"),
    ("lights.toggle(ctx, 'a')", "a power on"),
    ("lights.toggle(ctx, { 'a', 'b' })", "b power off"),
    ("lights.fade(ctx, 'b', { to = 20, secs = 3 })", "b brightness 40|b brightness 30|b brightness 20"),
    ("lights.fade(ctx, 'b', { to = 0, secs = 30, steps = 2 })", "b brightness 25|b power off"),
    ("lights.fade(ctx, 'a', { to = 0, secs = 30 })", ""),
    ("lights.fade(ctx, 'a', { to = 9, secs = 2 })", "a brightness 5|a power on|a brightness 5|a brightness 9"),
    ("lights.fade(ctx, 'gone', { to = 9, secs = 2 })", ""),
)


async def test_lights_are_commanded_within_their_ranges(pool: WorkerPool) -> None:
    for body, expected in LIGHTS:
        home = lamps()
        await play(pool, home, "lights", body)
        assert "|".join(home.commanded) == expected, body


async def test_functions_of_lights_return_whether_all_succeeded_and_never_raise(pool: WorkerPool) -> None:
    home = lamps()
    home.stubborn = {"a"}
    body = "print(lights.on(ctx, 'a'), lights.on(ctx, 'd'), lights.on(ctx, 'gone'), lights.on(ctx, {'a', 'b'}))"
    assert await play(pool, home, "lights", body) == ["false\ttrue\tfalse\tfalse"]


async def test_a_fade_skips_lights_that_are_switched_off_by_hand(pool: WorkerPool) -> None:
    home = lamps()
    home.by_hand = {2: "b"}
    await play(pool, home, "lights", "lights.fade(ctx, 'b', { to = 90, secs = 40, steps = 4 })")
    assert (home.commanded, home.sleeps) == (["b brightness 60"], [10, 10])


async def test_an_offline_light_is_not_on(pool: WorkerPool) -> None:
    home = lamps()
    home.devices["b"]["attributes"]["state"] = "offline"
    assert await play(
        pool, home, "lights", "print(lights.is_on(ctx, 'b'), lights.is_on(ctx, 'c'), #lights.find(ctx))"
    ) == ["false\ttrue\t3"]


def heating() -> Home:
    """Return three thermostats: one with modes, one without modes, and one that is off."""
    home, warm = Home(), {"value": 21, "unit": "°C"}
    home.add("x:A 1", TARGET, MODES, kind="Sensor", hvac_mode="heat", target_temperature=warm)
    home.add("plain", TARGET, kind="Sensor", target_temperature=warm)
    home.add("off", TARGET, MODES, kind="Sensor", hvac_mode="off")
    return home


CLIMATE: tuple[tuple[str, str, list[str]], ...] = (
    ("climate.set(ctx, 'plain', 19.3)", "true", ["plain target_temperature 19.5"]),
    ("climate.set(ctx, 'plain', 50)", "true", ["plain target_temperature 28"]),
    ("climate.set(ctx, 'gone', 20)", "false", []),
    ("climate.mode(ctx, 'x:A 1', 'off')", "true", ["x:A 1 hvac_mode off"]),
    ("climate.mode(ctx, 'x:A 1', 'dry')", "false", []),
    ("climate.mode(ctx, 'plain', 'off')", "false", []),
    ("climate.pause(ctx, 'off') and climate.resume(ctx, 'off')", "true", []),
    ("climate.pause(ctx, 'gone')", "false", []),
    ("climate.resume(ctx, 'plain')", "true", []),
)


async def test_climate_is_commanded_within_the_range_of_the_device(pool: WorkerPool) -> None:
    for body, printed, commanded in CLIMATE:
        home = heating()
        assert (await play(pool, home, "climate", f"print({body})"), home.commanded) == ([printed], commanded), body


async def test_a_pause_is_stored_once_and_restores_the_mode(pool: WorkerPool) -> None:
    home = heating()
    twice = "for _ = 1, 2 do climate.pause(ctx, 'x:A 1') climate.pause(ctx, 'plain') end"
    await play(pool, home, "climate", twice)
    assert home.commanded == ["x:A 1 hvac_mode off", "plain target_temperature 7"]
    assert home.variables == {"climate.x_a_1": {"mode": "heat"}, "climate.plain": {"target": 21}}
    home.commanded.clear()
    home.stubborn = {"plain"}
    await play(pool, home, "climate", "climate.resume(ctx, 'x:A 1') climate.resume(ctx, 'plain')")
    assert home.commanded == ["x:A 1 hvac_mode heat", "plain target_temperature 21.0"]
    assert home.variables == {"climate.x_a_1": None, "climate.plain": {"target": 21}}


PRESENCE: tuple[tuple[dict[str, tuple[bool, str]], str], ...] = (
    ({}, "false\tfalse\t0"),
    ({"ann": (True, "online"), "bob": (False, "online")}, "true\tfalse\t1"),
    ({"ann": (False, "online"), "bob": (False, "online")}, "false\ttrue\t0"),
    ({"ann": (False, "online"), "bob": (False, "offline")}, "false\tfalse\t0"),
    ({"ann": (True, "offline")}, "false\tfalse\t0"),
)


async def test_presence_ignores_unavailable_devices(pool: WorkerPool) -> None:
    for people, printed in PRESENCE:
        home = Home()
        home.add("lamp", POWER)
        for id_, (is_home, state) in people.items():
            home.add(id_, kind="Virtual", presence=is_home, state=state)
        body = "print(presence.home(ctx), presence.nobody(ctx), #presence.who(ctx))"
        assert await play(pool, home, "presence", body) == [printed], people


SCHEDULE = (
    ("2026-01-05T08:00+01:00", "schedule.is_between('08:00', '09:00')", "true"),
    ("2026-01-05T09:00+01:00", "schedule.is_between('08:00', '09:00')", "false"),
    ("2026-01-05T23:00+01:00", "schedule.is_between('22:00', '06:00')", "true"),
    ("2026-01-05T05:59+01:00", "schedule.is_between('22:00', '06:00')", "true"),
    ("2026-01-05T06:00+01:00", "schedule.is_between('22:00', '06:00')", "false"),
    ("2026-01-05T08:00+01:00", "schedule.day(), schedule.is_weekend()", "mon\tfalse"),
    ("2026-01-03T23:59+01:00", "schedule.day(), schedule.is_weekend()", "sat\ttrue"),
    ("2026-01-05T08:00+01:00", "schedule.secs_until('08:01'), schedule.secs_until('08:00')", "60\t86400"),
    ("2026-12-31T23:00+01:00", "schedule.secs_until('01:00')", "7200"),
    ("2026-03-28T12:00+01:00", "schedule.secs_until('12:00')", "82800"),
    ("2026-10-24T12:00+02:00", "schedule.secs_until('12:00')", "90000"),
    ("2026-01-05T08:00+01:00", "schedule.minutes('07:30')", "450"),
    (
        "2026-01-05T08:00+01:00",
        "(select(2, pcall(schedule.minutes, '7:30')))",
        '"7:30" is no time: write "HH:MM", "07:30"',
    ),
)


@pytest.mark.slow
async def test_schedule_uses_the_home_clock_on_long_and_short_days_too() -> None:
    for at, body, printed in SCHEDULE:
        async with open_pool(scripts=SCRIPTS, clock=VirtualClock(datetime.fromisoformat(at))) as pool:
            assert await play(pool, Home(), "schedule", f"print({body})") == [printed], (at, body)


async def test_unsupported_commands_are_not_offered(pool: WorkerPool) -> None:
    home = lamps()
    body = "local c = ctx:get_device('c') print(offers.find(c, 'brightness', 'set'), offers.find(c, 'power', 'set'))"
    assert await play(pool, home, "offers", body) == ["nil\tnil"]
