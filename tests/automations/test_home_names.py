"""Each wrong name is told with the nearest right one, and what is right is not told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from appliance.automations.home_names import HomeNames, NameWatcher
from appliance.automations.waiting import explain_waiting
from appliance.errors import Fault
from appliance.home.events import CatalogReloaded, DeviceEvent
from appliance.lua.lua_catalog import Asset
from appliance.lua.source import Source
from appliance.lua.worker_pool import Function
from tests.automations.homes import device, home, parse
from tests.fakes.automations import automation, bench

MOTION, LAMP, BUTTON = "mqtt:hall_motion", "desk:light:0", "mqtt:button"
SETS = Source(name="s.lua", text=b"ctx:set('holiday', true) ctx:start_timer(\"laundry\", 60)")
STATE: dict[str, Any] = {"type": "device_state", "equals": "occupied"}
CHANGE: dict[str, Any] = {"type": "device_state_change"}
MOVES: dict[str, Any] = {**CHANGE, "device_id": MOTION, "attribute": "occupancy"}
PRESS: dict[str, Any] = {"type": "device_event", "device_id": BUTTON}


def names(*called: Source, targets: tuple[str, ...] = ()) -> HomeNames:
    """A home with three devices, two variables, two timers and two scenes."""
    return HomeNames(
        adapters=("mqtt", "desk", "phone"),
        devices={MOTION: ("state", "occupancy", "battery"), LAMP: ("power", "brightness"), BUTTON: ("state",)},
        events={BUTTON: {"single", "double"}},
        variables=["mode"],
        timers=["off"],
        scenes=["evening", "film"],
        sources=[SETS, *called],
        called=called,
        notify_targets=targets,
    )


def sentences(known: HomeNames, **fields: Any) -> list[str]:
    """What is told of an automation."""
    fields = {"trigger": {"type": "interval", "every_secs": 60}, **fields}
    definition = parse({"id": "a", "name": "A", "execute": FUNCTION, **fields}).definition
    assert definition is not None
    found = known.list_faults([Asset(definition=definition, source=Source(name="a.lua", text=b""))])
    return [fault.message for fault in found]


FUNCTION = Function(1)

TRIGGERS: list[tuple[dict[str, Any], str]] = [
    ({**CHANGE, "device_id": "mqtt:hal_motion"}, f"no such device; did you mean {MOTION}"),
    ({**CHANGE, "device_id": "mqtt:hallmotion"}, f"no such device; did you mean {MOTION}"),
    ({**CHANGE, "device_id": [LAMP, "desk:light:1"]}, f"no such device; did you mean {LAMP}"),
    ({**CHANGE, "device_id": "mqtt:hall_motion", "attribute": "motion"}, "has never shown"),
    ({**CHANGE, "device_id": MOTION, "attribute": "illuminance"}, "it has shown battery, occupancy"),
    ({**CHANGE, "device_id": LAMP, "attribute": "color_temperature"}, "it has shown brightness, power"),
    ({**CHANGE, "device_id": MOTION, "attribute": "custom.mqtt.batery"}, "did you mean battery"),
    ({**CHANGE, "device_id": "desk:lite:0"}, f"did you mean {LAMP}"),
    ({"type": "weather_state", "device_id": "mqtt:weather", "attribute": "rainfall"}, "no such device"),
    ({**PRESS, "event": "singel"}, "has never sent; did you mean single"),
    ({**PRESS, "event": "doubel"}, "did you mean double"),
    ({**PRESS, "event": "hold"}, "it has sent double, single"),
    ({**PRESS, "device_id": "mqtt:buton"}, f"did you mean {BUTTON}"),
    ({"type": "variable_change", "name": "mod"}, "no such variable; did you mean mode"),
    ({"type": "variable_change", "name": "holidays"}, "did you mean holiday"),
    ({"type": "timer", "name": "of"}, "no such timer; did you mean off"),
    ({"type": "timer", "name": "landry"}, "did you mean laundry"),
    ({"type": "adapter_lifecycle", "adapter": "mqt"}, "no such adapter; did you mean mqtt"),
    ({"type": "adapter_lifecycle", "adapter": "fone"}, "did you mean phone"),
]
CONDITIONS: list[tuple[dict[str, Any], str]] = [
    ({**STATE, "device_id": "mqtt:hall", "attribute": "occupancy"}, "no such device"),
    ({**STATE, "device_id": LAMP, "attribute": "occupancy"}, "has never shown"),
    ({"type": "presence", "device_id": MOTION}, "has never shown"),
    ({"type": "variable", "name": "modes", "equals": 1}, "did you mean mode"),
    ({"type": "any", "conditions": [{"type": "variable", "name": "mdoe", "equals": 1}]}, "did you mean mode"),
]
CALLS: list[tuple[str, str]] = [
    (
        "ctx:command('desk:light:9', {})",
        f"ctx:command names 'desk:light:9', and there is no such device; did you mean {LAMP}",
    ),
    ("ctx:wait_for('mqtt:hall_moton', {})", f"did you mean {MOTION}"),
    ("ctx:run_scene('evning')", "ctx:run_scene names 'evning', and there is no such scene; did you mean evening"),
    ("ctx:run_scene('flim')", "did you mean film"),
]


@pytest.mark.parametrize(("trigger", "said"), TRIGGERS)
def test_a_wrong_name_in_a_trigger(trigger: dict[str, Any], said: str) -> None:
    [sentence] = sentences(names(), trigger=trigger)
    assert sentence.startswith("trigger.") and said in sentence


@pytest.mark.parametrize(("condition", "said"), CONDITIONS)
def test_a_wrong_name_in_a_condition(condition: dict[str, Any], said: str) -> None:
    [sentence] = sentences(names(), conditions=[condition])
    assert sentence.startswith("conditions[1].") and said in sentence


@pytest.mark.parametrize(("call", "said"), CALLS)
def test_a_wrong_name_in_a_call(call: str, said: str) -> None:
    [sentence] = sentences(names(Source(name="b.lua", text=call.encode())))
    assert said in sentence


def test_a_target_of_messages_whose_section_is_not_there() -> None:
    [sentence] = sentences(names(targets=("phone:send", "fone:send")))
    assert sentence == "fone:send: names 'fone', and there is no such adapter; did you mean phone"


def test_what_is_right_or_cannot_be_known_is_not_told() -> None:
    right = [
        {**CHANGE, "device_id": MOTION, "attribute": "occupancy"},
        {**CHANGE, "device_id": BUTTON, "attribute": "battery"},
        {**PRESS, "event": "single"},
        {"type": "variable_change", "name": "holiday"},
        {"type": "timer", "name": "laundry"},
    ]
    for trigger in right:
        assert sentences(names(), trigger=trigger) == []
    computed = Source(name="c.lua", text=b"ctx:start_timer('door_' .. id, 5)")
    assert sentences(names(computed), trigger={"type": "timer", "name": "door_5"}) == []


def test_what_a_trigger_and_a_condition_wait_for_is_told_with_the_values_of_now() -> None:
    house = home(device({"occupancy": "unoccupied"}, MOTION))
    house.variables = {"mode": "away"}
    definition = parse(
        {
            "id": "a",
            "name": "A",
            "execute": FUNCTION,
            "trigger": {
                **CHANGE,
                "device_id": MOTION,
                "attribute": "occupancy",
                "equals": "occupied",
                "duration_secs": 5,
            },
            "conditions": [
                {"type": "variable", "name": "mode", "equals": "home"},
                {"type": "all", "conditions": [{**STATE, "device_id": LAMP, "attribute": "occupancy"}]},
            ],
        }
    ).definition
    assert definition is not None
    assert [*explain_waiting(definition, house.registry, house.get_variable)] == [
        "waits until 'mqtt:hall_motion' shows occupancy = 'occupied' for 5 s; it shows occupancy = 'unoccupied'",
        "condition 1 needs variable mode = 'home'; it is 'away'",
        "condition 2.1 needs that 'desk:light:0' shows occupancy = 'occupied'; there is no device 'desk:light:0'",
    ]


async def test_names_are_judged_a_minute_after_the_start_and_after_each_reload(tmp_path: Path) -> None:
    told: asyncio.Queue[HomeNames] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    class Telling(HomeNames, frozen=True, kw_only=True):
        def list_faults(self, automations: Iterable[Any]) -> list[Fault]:
            loop.call_soon_threadsafe(told.put_nowait, self)
            return []

    class Watcher(NameWatcher):
        def known(self) -> HomeNames:
            found = super().known()
            return Telling(**{name: getattr(found, name) for name in found.__struct_fields__})

    async with bench(tmp_path, automation()) as it:
        parts: Any = SimpleNamespace(registry=it.registry, bus=it.bus, clock=it.clock, variables=it.variables)
        settings: dict[str, Any] = {"adapters": (), "notify_targets": (), "has_answered": lambda: True}
        async with Watcher(parts, it.parts.automations, it.parts.timers, lambda: ([], []), **settings):
            it.bus.publish(DeviceEvent(device_id=LAMP, event="press", data={}))
            await it.pass_by(30)
            it.show()
            assert told.empty()
            await it.pass_by(40)
            it.show()
            first = await told.get()
            assert set(first.devices[LAMP]) == {"power", "brightness", "state"} and first.events == {LAMP: {"press"}}
            assert len(first.called) == 1
            await it.parts.automations.switch("a", is_enabled=False)
            it.bus.publish(CatalogReloaded(target="automations", loaded_count=1, faults=(), duration_ms=1))
            assert len((await told.get()).called) == 0
