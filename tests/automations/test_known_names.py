"""Names that are not there are warned of, with the nearest that is; nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest

from appliance.automations.known_names import KnownNames
from appliance.lua.source import Source
from appliance.lua.worker_pool import Function
from tests.automations.homes import parse

KNOWN = KnownNames(adapters=["elgato_lights", "tv"], rooms=lambda: ["den", "hall"], groups=lambda: ["downstairs"])
ON = {"type": "device_state", "device_id": "elgato:light:0", "attribute": "power", "equals": "on"}
BASE = {"id": "a", "name": "A", "execute": Function(1)}


@pytest.mark.parametrize(
    ("fields", "warnings"),
    [
        ({"trigger": {"type": "device_state_change", "device_id": "tv:tv"}}, []),
        (
            {"trigger": {"type": "device_state_change", "device_id": ["tv:tv", "elgato:light:0"]}},
            [
                "trigger.device_id names 'elgato:light:0', and there is no section [adapters.elgato]; "
                "did you mean elgato_lights:light:0"
            ],
        ),
        (
            {
                "triggers": [
                    {"type": "device_event", "room_id": "hal"},
                    {"type": "device_event", "group_id": "downstair"},
                    {"type": "device_event", "room_id": "hall"},
                ]
            },
            [
                "triggers[1].room_id names 'hal', and there is no such room; did you mean hall",
                "triggers[2].group_id names 'downstair', and there is no such group; did you mean downstairs",
            ],
        ),
        (
            {
                "trigger": {"type": "interval", "every_secs": 1},
                "conditions": [
                    {"type": "any", "conditions": [ON]},
                    {"type": "room_state", "room_id": "x", "max_devices": 1},
                ],
            },
            [
                "conditions[1].conditions[1].device_id names 'elgato:light:0', and there is no section "
                "[adapters.elgato]; did you mean elgato_lights:light:0",
                "conditions[2].room_id names 'x', and there is no such room",
            ],
        ),
    ],
)
def test_a_name_that_is_not_there_is_warned_of(fields: dict[str, Any], warnings: list[str]) -> None:
    definition = parse({**BASE, **fields}).definition
    assert definition is not None
    assert list(map(str, KNOWN.warnings_of(definition.triggers, definition.conditions))) == warnings
    unknown = KnownNames(adapters=["elgato", "elgato_lights", "tv"])
    assert list(unknown.warnings_of(definition.triggers, definition.conditions)) == []


def test_an_automation_cannot_have_the_id_of_a_path() -> None:
    found = parse({**BASE, "id": "reload", "trigger": {"type": "interval", "every_secs": 1}})
    assert found.faults == ("id must not be 'reload', which is a path of the API; choose another",)


CALLS = """
  ctx:command("elgato:light:0", { capability = "power", action = "on" }) -- ctx:command("x:y")
  c:command_room ( 'hal' , on)
  ctx:command_group("upstairs", on) ctx:list_room_devices("hall") ctx:wait_for("tv:tv", {})
  ctx:invoke("tw:info")
  ctx:get_group("x") ctx:command(id, on) ctx:command("x:" .. id, on) ctx:command("a\\\\tb", on) command("x:y")
  ctx:command([[x:y]], on) ctx.command("x:y") ctx:command("x:y" or id)
"""


def test_a_name_in_a_call_that_is_not_there_is_warned_of_with_its_line() -> None:
    source = Source(name="config/scenes/a.lua", text=b"#!/lua\n" + CALLS.encode())
    assert list(map(str, KNOWN.inspect(source))) == [
        "config/scenes/a.lua:3: ctx:command names 'elgato:light:0', and there is no section [adapters.elgato]; "
        "did you mean elgato_lights:light:0",
        "config/scenes/a.lua:4: ctx:command_room names 'hal', and there is no such room; did you mean hall",
        "config/scenes/a.lua:5: ctx:command_group names 'upstairs', and there is no such group; did you mean "
        "downstairs",
        "config/scenes/a.lua:6: ctx:invoke names 'tw:info', and there is no section [adapters.tw]",
    ]
