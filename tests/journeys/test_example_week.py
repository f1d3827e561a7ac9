"""The ten bundled automations for a week with a clock change, a restart, and unplugged devices."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.automations.homes import BERLIN
from tests.fakes.automations import Card
from tests.fakes.recipes import filled
from tests.fakes.week import Vendor, Week, WeekClock, open_week

ROOT = Path(__file__).parents[2]

NAMED: dict[str, dict[str, list[str]]] = {
    "motion_light": {"sensors": ["x:hall_motion"]},
    "away": {"people": ["x:ann", "x:bob"]},
    "window_heating": {"windows": ["x:window", "x:balcony"], "heating": ["x:radiator"]},
    "door_left_open": {"doors": ["x:door"]},
    "washing_machine": {"plugs": ["x:washer"]},
    "double_press": {"buttons": ["x:button"]},
    "evening_light": {},
    "low_batteries": {},
    "vacation_lights": {},
    "wake_up_light": {},
}
"""The recipes, and the values with which they are filled in."""

GROUPS = {
    "evening": ["desk"],
    "hall": ["hall"],
    "bedroom": ["bed"],
    "pretend": ["front", "porch"],
    "vacation": ["garden"],
}

OFF = {"power": "off", "brightness": 50}

EVENTS = """
Wed 06:40 bed power off
Wed 12:00 door contact open
Wed 12:04 door contact closed
Wed 12:30 door contact open
Wed 12:47 door contact closed
Wed 20:00 hall_motion motion detected
Wed 20:01 hall_motion motion clear
Wed 20:02 hall_motion motion detected
Wed 20:03 hall_motion motion clear
Thu 03:00 bed power off
Thu 08:00 washer power_consumption 2000
Thu 08:20 washer power_consumption 2
Thu 08:22 washer power_consumption 300
Thu 09:00 washer power_consumption 1
Thu 17:00 desk unplug -
Thu 19:00 desk plug -
Thu 21:00 button press single
Thu 21:01 button press double
Thu 21:02 button press double
Fri 03:00 bed power off
Fri 07:00 remote battery 15
Fri 09:00 window contact open
Fri 09:00 balcony contact open
Fri 09:30 window contact closed
Fri 10:00 balcony contact closed
Fri 10:10 window contact open
Fri 10:10 window contact closed
Sat 08:00 ann presence false
Sat 10:00 bob presence false
Sat 19:15 porch power off
Sun 01:30 window contact open
Sun 12:00 bob presence true
Sun 12:30 window contact closed
Sun 15:00 vacation set -
Mon 07:00 remote battery 100
Mon 23:30 bed power off
Tue 12:00 vacation unset -
Tue 19:00 remote battery 12
Tue 20:00 hall_motion motion detected
Tue 20:01 hall_motion unplug -
"""
"""Actions of people and reports of devices, in the home's time."""

EXPECTED = """
Wed 06:30 bed brightness 1
Wed 06:30 bed power on
Wed 06:40 bed brightness 40
Wed 12:35 sent: Left open: x:door
Wed 12:45 sent: Left open: x:door
Wed 18:00 desk brightness 33
Wed 18:00 desk power on
Wed 20:00 hall brightness 60
Wed 20:00 hall power on
Wed 20:02 hall brightness 60
Wed 20:06 hall power off
Thu 06:30 bed brightness 1
Thu 06:30 bed power on
Thu 06:40 bed brightness 40
Thu 06:50 bed brightness 80
Thu 09:03 sent: The washing machine is done
Thu 18:00 desk brightness 33
Thu 18:00 desk power on
Thu 21:01 bed power off
Thu 21:02 bed brightness 40
Thu 21:02 bed power on
Fri 06:30 bed brightness 1
Fri 06:30 bed power on
Fri 06:40 bed brightness 40
Fri 06:50 bed brightness 80
Fri 09:00 radiator hvac_mode off
Fri 10:00 radiator hvac_mode heat
Fri 18:00 desk brightness 33
Fri 18:30 sent: The battery is low: x:remote
Sat 10:10 bed power off
Sat 10:10 desk power off
Sat 18:00 front brightness 60
Sat 18:00 front power on
Sat 18:30 front power off
Sat 18:30 porch brightness 60
Sat 18:30 porch power on
Sat 19:00 porch power off
Sat 19:00 front brightness 60
Sat 19:00 front power on
Sat 19:30 front power off
Sat 19:30 porch brightness 60
Sat 19:30 porch power on
Sat 20:00 porch power off
Sat 20:00 front brightness 60
Sat 20:00 front power on
Sat 20:30 front power off
Sat 20:30 porch brightness 60
Sat 20:30 porch power on
Sat 21:00 porch power off
Sat 21:00 front brightness 60
Sat 21:00 front power on
Sat 21:30 front power off
Sat 21:30 porch brightness 60
Sat 21:30 porch power on
Sat 22:00 porch power off
Sat 22:00 front brightness 60
Sat 22:00 front power on
Sat 22:30 front power off
Sat 22:30 porch brightness 60
Sat 22:30 porch power on
Sat 23:00 porch power off
Sun 01:30 radiator hvac_mode off
Sun 12:30 radiator hvac_mode heat
Sun 18:41 garden brightness 70
Sun 18:41 garden power on
Sun 22:41 garden power off
Mon 06:30 bed brightness 1
Mon 06:30 bed power on
Mon 06:40 bed brightness 40
Mon 06:50 bed brightness 80
Mon 18:00 desk brightness 33
Mon 18:00 desk power on
Mon 18:49 garden brightness 70
Mon 18:49 garden power on
Mon 22:49 garden power off
Tue 06:30 bed brightness 1
Tue 06:30 bed power on
Tue 06:40 bed brightness 40
Tue 06:50 bed brightness 80
Tue 18:00 desk brightness 33
Tue 20:00 hall brightness 60
Tue 20:00 hall power on
Tue 21:00 hall power off
"""
"""All expected commands and messages."""


FADING = re.compile(r"(?m)^\w+ 06:(?!30|40|50)\d\d bed brightness \d+$")
"""The steps of the wake-up light. The table of expected commands omits these steps."""


def furnish(folder: Path) -> Path:
    """Write the bundled configuration, with automations from recipes."""
    shutil.copytree(ROOT / "config", folder / "config")
    (folder / "config/automations").mkdir(exist_ok=True)
    for name, values in NAMED.items():
        (folder / "config/automations" / f"{name}.lua").write_text(filled(name, **values))
    return folder / "config"


def devices() -> dict[str, dict[str, Any]]:
    """Return the devices at the beginning."""
    return {
        **{name: dict(OFF) for name in ("desk", "hall", "bed", "front", "porch", "garden")},
        "hall_motion": {"motion": "clear"},
        **{name: {"contact": "closed"} for name in ("door", "window", "balcony")},
        "radiator": {"hvac_mode": "heat"},
        "washer": {"power_consumption": {"value": 0, "unit": "W"}},
        "remote": {"battery": 80},
        "button": {"battery": 90},
        **{name: {"presence": True} for name in ("ann", "bob")},
    }


def instant(day: str, time: str) -> datetime:
    """Return the instant of a line in the week from 2026-03-25. The clocks go forward on the Sunday of this week."""
    start = datetime(2026, 3, 25, tzinfo=BERLIN.timezone)
    number = ("Wed", "Thu", "Fri", "Sat", "Sun", "Mon", "Tue").index(day)
    hour, minute = map(int, time.split(":"))
    return start.replace(day=start.day + number, hour=hour, minute=minute).astimezone(UTC)


def happen(week: Week, name: str, what: str, value: str) -> None:
    """Perform the action of a line."""
    vendor = week.vendor
    if what == "press":
        week.press(name, value)
    elif name == "vacation":
        week.variables.set("vacation", what == "set" or None, "test")
    elif what in {"unplug", "plug"}:
        (vendor.unplugged.add if what == "unplug" else vendor.unplugged.discard)(name)
    else:
        words: dict[str, Any] = {"true": True, "false": False}
        given = words.get(value, int(value) if value.isdigit() else value)
        measured = {"value": given, "unit": "W"} if what == "power_consumption" else given
        vendor.attributes[name][what] = measured
    week.look()


RESTARTS = (("Wed", "20:04"), ("Sat", "20:00"), ("Sun", "02:00"))
"""The times at which the hub is stopped for two minutes."""


@pytest.mark.slow
async def test_each_automation_follows_its_description_for_a_week(tmp_path: Path) -> None:
    config, card = furnish(tmp_path), Card()
    vendor = Vendor(WeekClock(instant("Wed", "00:00")), devices())
    lines = [line.split() for line in EVENTS.strip().splitlines()]
    stops = [instant(*each) for each in RESTARTS] + [instant("Tue", "23:59")]
    stopped_at = None
    for stop in stops:
        async with open_week(config, vendor, card, GROUPS, stopped_at) as week:
            while lines and instant(lines[0][0], lines[0][1]) < stop:
                day, time, *what = lines.pop(0)
                await week.until(instant(day, time))
                happen(week, *what)
            await week.until(stop)
        stopped_at = vendor.clock.now()
        vendor.clock.set(stopped_at + timedelta(minutes=2))
    seen = [line for line in vendor.lines if not FADING.match(line)]
    assert seen == EXPECTED.strip().splitlines()
    assert len(vendor.lines) - len(seen) == 9 + 4 * 18
