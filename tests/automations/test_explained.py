"""`lares why` says what a trigger waits for and what a condition needs, with the values of now."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.automations.homes import device, home, parse
from tests.automations.test_home_names import BUTTON_ITSELF, CHANGE, FUNCTION, LAMP, MOTION, MOVES, PRESS, STATE
from tests.fakes.rows import each_row

WAITS: list[tuple[dict[str, Any], str]] = [
    (
        {**MOVES, "equals": "occupied", "duration_secs": 5},
        "until 'mqtt:hall_motion' shows occupancy = 'occupied' for 5 s; it shows occupancy = 'unoccupied'",
    ),
    (
        {**CHANGE, "device_id": MOTION, "attribute": "motion"},
        "until 'mqtt:hall_motion' shows motion = any value; it shows no motion, but occupancy",
    ),
    (
        {**CHANGE, "device_id": "mqtt:button", "attribute": "battery"},
        "until 'mqtt:button' shows battery = any value; it shows nothing now",
    ),
    ({**CHANGE, "device_id": LAMP}, "until 'desk:light:0' changes; there is no device 'desk:light:0'"),
    ({**CHANGE, "room_id": "den"}, "until a device in room 'den' changes"),
    ({**PRESS, "event": "doubel"}, "until 'mqtt:button' sends doubel; it sends single, hold"),
    ({**PRESS, "device_id": LAMP}, "until 'desk:light:0' sends any event; there is no device 'desk:light:0'"),
    ({"type": "device_event", "group_id": "all", "event": "single"}, "until a device of group 'all' sends single"),
    ({"type": "variable_change", "name": "mode"}, "until variable mode = any value; it is 'away'"),
    ({"type": "variable_change", "name": "x", "above": 3}, "until variable x above 3; it is not set"),
    ({"type": "timer", "name": "off"}, "until the timer 'off' is over"),
    ({"type": "adapter_lifecycle"}, "until an adapter starts"),
    ({"type": "adapter_lifecycle", "adapter": "desk"}, "until the adapter 'desk' starts"),
    ({"type": "system_error", "contains": "disk"}, "until something fails with 'disk' in its message"),
    ({"type": "interval", "every_secs": 60}, "for its interval, every 60 s"),
    (
        {"type": "wall_clock", "time": "07:30", "weekdays": ["mon", "tue"]},
        "for 07:30 on mon, tue; next 2026-06-02T05:30:00.000Z",
    ),
    (
        {"type": "cron", "expression": "0 30 7 * * *", "timezone": "local"},
        "for the cron expression '0 30 7 * * *' (Europe/Berlin); next 2026-06-02T05:30:00.000Z",
    ),
    ({"type": "date", "on": "12-24", "time": "18:00"}, "for 12-24 at 18:00; next 2026-12-24T17:00:00.000Z"),
    ({"type": "sunset", "offset_mins": -30}, "for sunset -30 min; next 2026-06-01T18:49:32.000Z"),
]
NEEDS: list[tuple[dict[str, Any], str]] = [
    (
        {**STATE, "device_id": MOTION, "attribute": "occupancy"},
        "that 'mqtt:hall_motion' shows occupancy = 'occupied'; it does not hold: occupancy was 'unoccupied'",
    ),
    (
        {"type": "time_window", "start": "22:00", "end": "06:00"},
        "a time from 22:00 to 06:00; it does not hold: time was 14:00",
    ),
    (
        {"type": "time_window", "start": "08:00", "end": "20:00"},
        "a time from 08:00 to 20:00; it holds (time was 14:00)",
    ),
    ({"type": "sun_position", "after": "sunset"}, "a time after sunset; it does not hold: "),
    ({"type": "weekday", "days": ["sat", "sun"]}, "a sat, sun; it does not hold: day was mon"),
    (
        {"type": "date_range", "from": "12-01", "to": "01-06"},
        "a date from 12-01 to 01-06; it does not hold: date was",
    ),
    (
        {"type": "room_state", "room_id": "den", "min_devices": 2},
        "at least 2 devices in room 'den'; it does not hold: ",
    ),
    ({"type": "variable", "name": "mode", "equals": "away"}, "variable mode = 'away'; it holds (variable 'mode' was"),
    ({"type": "all", "conditions": [{"type": "weekday", "days": ["sat"]}]}, "all of its 1; it does not hold"),
]
AT = datetime.fromisoformat("2026-06-01T12:00:00Z")


@each_row(("trigger", "said"), WAITS)
def test_why_says_what_a_trigger_waits_for(trigger: dict[str, Any], said: str) -> None:
    assert words(trigger)[0] == f"waits {said}"


@each_row(("condition", "said"), NEEDS)
def test_why_says_what_a_condition_needs(condition: dict[str, Any], said: str) -> None:
    sentences = words({"type": "interval", "every_secs": 60}, condition)[1:]
    assert sentences[0].startswith(f"condition 1 needs {said}")
    assert len(sentences) == 1 or sentences[1].startswith("condition 1.1 needs a sat; it does not hold: day was mon")


def words(trigger: dict[str, Any], *conditions: dict[str, Any]) -> list[str]:
    """What is told of an automation, on a Monday at 14:00 in Berlin."""
    house = home(device({"occupancy": "unoccupied"}, MOTION), BUTTON_ITSELF, variables={"mode": "away"})
    fields = {"id": "a", "name": "A", "execute": FUNCTION, "trigger": trigger, "conditions": list(conditions)}
    definition = parse(fields).definition
    assert definition is not None
    return [*definition.explain(house, AT)]
