"""Each wrong name causes a warning with the nearest known name. `lares why` describes triggers and conditions."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.adapters.base import Adapter
from appliance.adapters.kind import AdapterKind
from appliance.adapters.kinds import KINDS
from appliance.adapters.matter.adapter import MatterAdapter
from appliance.adapters.matter.operations import Operations
from appliance.automations.names.home_names import (
    MAX_CALL_FAULTS,
    MAX_NAME_FAULTS,
    MAX_NEAR_NAMES,
    MAX_NEAR_NAMES_PER_FILE,
    MAX_SEARCHED_CHARS,
    HomeNames,
    NearNames,
    PastNames,
)
from appliance.automations.names.name_watcher import (
    MAX_PAST_BYTES,
    MAX_PAST_NAMES,
    MAX_REMOVED_DEVICES,
    NAME_OVERHEAD_BYTES,
    NameWatcher,
    read_past,
    read_removed,
)
from appliance.errors import Fault
from appliance.home.bus import Bus
from appliance.home.command_specs import CommandSpec
from appliance.home.events import CatalogReloaded, DeviceEvent, DeviceRemoved
from appliance.home.layout import Layout
from appliance.home.model import Metadata
from appliance.lua.files.catalog import LoadedFile
from appliance.lua.files.folder import Contents, Folder, modules_of
from appliance.lua.text.source import Source
from appliance.tables.checks import Function
from tests.automations.homes import NOW, change, device, home, parse
from tests.fakes.automations import Card, automation, bench
from tests.fakes.clock import VirtualClock
from tests.fakes.rows import each_row

MOTION, LAMP, BUTTON = "mqtt:hall_motion", "desk:light:0", "mqtt:button"
NEW, SPACED = "mqtt:new", "desk:front door"
SETS = Source(name="s.lua", text=b"ctx:set('holiday', true) ctx:start_timer(\"laundry\", 60)")
STATE: dict[str, Any] = {"type": "device_state", "equals": "occupied"}
CHANGE: dict[str, Any] = {"type": "device_state_change"}
MOVES: dict[str, Any] = {**CHANGE, "device_id": MOTION, "attribute": "occupancy"}
PRESS: dict[str, Any] = {"type": "device_event", "device_id": BUTTON}
BUTTON_ITSELF = replace(
    device({}, BUTTON), metadata=Metadata(source="mqtt", vendor_specific={"events": ["single", "hold"]})
)


def names(*called: Source) -> HomeNames:
    """Return a home with three devices, two variables, two timers, and two scenes."""
    return HomeNames(
        adapters=("mqtt", "desk", "phone"),
        operations={"phone": {"send", "sound"}},
        rooms=["den", "hall"],
        groups=["downstairs", "empty"],
        members={
            ("room", "den"): [LAMP, "gone:lamp"],
            ("room", "hall"): [BUTTON, MOTION],
            ("group", "downstairs"): [MOTION, LAMP],
        },
        devices={
            MOTION: ("state", "occupancy", "battery"),
            LAMP: ("state", "power", "brightness"),
            BUTTON: ("state",),
            NEW: ("state",),
            SPACED: ("state", "contact"),
        },
        events={BUTTON: {"single", "double"}, LAMP: ()},
        variables=["mode"],
        timers=["off"],
        scenes=["evening", "film"],
        sources=[SETS, *called],
        called=called,
    )


def sentences(known: HomeNames, **fields: Any) -> list[str]:
    if "triggers" not in fields:
        fields = {"trigger": {"type": "interval", "every_secs": 60}, **fields}
    definition = parse({"id": "a", "name": "A", "execute": FUNCTION, **fields}).definition
    assert definition is not None
    found = known.list_faults([LoadedFile(definition=definition, source=Source(name="a.lua", text=b""))])
    return [fault.message for fault in found]


FUNCTION = Function(1)

TRIGGERS: tuple[tuple[dict[str, Any], str], ...] = (
    ({**CHANGE, "device_id": MOTION, "attribute": "custom.mqtt.batery"}, "did you mean battery?"),
    ({**CHANGE, "device_id": NEW, "attribute": "power"}, "has never reported; it has reported nothing yet"),
    ({**PRESS, "device_id": NEW, "event": "single"}, "never sent; it has sent nothing yet"),
    (
        {**CHANGE, "device_id": BUTTON, "attribute": "battery"},
        "has never reported; it has reported nothing yet, but it sends double, single; for events, use device_event",
    ),
    (
        {"type": "device_event", "group_id": "downstairs"},
        "group_id waits for events, which no device of group 'downstairs' has sent; they have sent nothing yet, but "
        "they have reported battery, brightness, occupancy, power; for attributes, use device_state_change",
    ),
)
"""Triggers without an example in `tests/journeys/test_wrong_names.py`, which tests the other messages."""


@each_row(("trigger", "output"), TRIGGERS)
def test_a_wrong_name_in_a_trigger(trigger: dict[str, Any], output: str) -> None:
    [sentence] = sentences(names(), trigger=trigger)
    assert sentence.startswith("trigger.") and output in sentence


@pytest.mark.parametrize("kind", KINDS.values(), ids=[*KINDS])
def test_the_operations_of_a_kind_match_its_adapters(kind: AdapterKind) -> None:
    classes = [each for each in vars(import_module(kind.adapter_module)).values() if isinstance(each, type)]
    [adapter] = [each for each in classes if issubclass(each, Adapter) and each.__module__ == kind.adapter_module]
    made = adapter.__new__(adapter)
    if isinstance(made, MatterAdapter):
        made._operations = Operations("home", *[None] * 3)  # type: ignore[arg-type]
    assert kind.operations is not None and set(kind.operations) == set(made.operations)


def test_correct_and_undecidable_names_cause_no_warning() -> None:
    right = [
        {**CHANGE, "device_id": NEW, "attribute": "state"},
        {**CHANGE, "device_id": NEW},
        {**CHANGE, "room_id": "den"},
        {**CHANGE, "group_id": "empty", "attribute": "occupancy"},
        PRESS,
        {"type": "device_event", "group_id": "empty", "event": "single"},
        {"type": "variable_change", "name": "holiday"},
        {"type": "timer", "name": "laundry"},
    ]
    for trigger in right:
        assert sentences(names(), trigger=trigger) == []
    computed = Source(name="c.lua", text=b"ctx:start_timer('door_' .. id, 5)")
    assert sentences(names(computed), trigger={"type": "timer", "name": "door_5"}) == []
    assert sentences(names(computed), trigger={"type": "timer", "name": "dor_5"}) != []


@pytest.mark.parametrize(
    "call", ["ctx:command('desk:lamp{}', {{}})", "ctx:wait_for('desk:lamp', {{ attribute = 'batery{}' }})"]
)
def test_similar_names_are_searched_only_for_the_first_faults_of_a_file(call: str) -> None:
    hostile = Source(name="h.lua", text="\n".join(call.format(number) for number in range(3_500)).encode())
    faults = [*names().inspect(hostile)]
    assert len(faults) == MAX_CALL_FAULTS + 1
    assert str(faults[-1]) == "h.lua: has further faults in calls of ctx; correct the listed ones first"


def test_similar_names_are_searched_only_for_the_first_unknown_names_of_a_file() -> None:
    triggers = [{**CHANGE, "device_id": f"desk:lihgt:{number}"} for number in range(MAX_NEAR_NAMES_PER_FILE + 10)]
    known = names()
    again = triggers[:20]
    found = sentences(known, triggers=[*triggers, *again])
    hinted = [each for each in found if each.endswith(f"did you mean {LAMP}?")]
    assert len(found) == len(triggers) + len(again) and len(hinted) == MAX_NEAR_NAMES_PER_FILE + len(again)
    assert sentences(replace(known, near=NearNames()), trigger=triggers[-1])[0].endswith(f"did you mean {LAMP}?")


def test_a_file_with_many_unknown_names_leaves_searches_for_other_files() -> None:
    def call(number: int) -> str:
        return f"ctx:command('desk:lihgt:{number}', {{ capability = 'power', action = 'on' }})\n"

    files = [
        Source(name=f"{name}.lua", text="".join(map(call, range(first, first + count))).encode())
        for name, first, count in (("a", 0, 45), ("b", 100, 1), ("c", 200, 45), ("d", 300, 45), ("e", 400, 45))
    ]
    found = names(*files).list_faults([])
    hinted = Counter(each.file for each in found if each.message.endswith(f"did you mean {LAMP}?"))
    most = MAX_NEAR_NAMES_PER_FILE
    assert hinted == {"a.lua": most, "b.lua": 1, "c.lua": most, "d.lua": most, "e.lua": MAX_NEAR_NAMES - 3 * most - 1}


def test_searches_among_many_names_end_after_a_number_of_characters() -> None:
    near, known = NearNames(), [LAMP, "x" * MAX_SEARCHED_CHARS]
    assert near.find("device", f"{LAMP}x", known) == LAMP
    assert near.find("device", f"{LAMP}y", known) is None
    assert near.find("device", f"{LAMP}x", known) == LAMP


def test_only_the_first_unknown_names_of_a_definition_are_listed() -> None:
    found = sentences(names(), trigger={**CHANGE, "device_id": [f"gone:{number}" for number in range(1_000)]})
    assert len(found) == MAX_NAME_FAULTS + 1
    assert found[0] == "has further unknown names; correct the listed ones first"


def test_a_declared_variable_needs_no_value_yet() -> None:
    condition = {"type": "variable", "name": "vacation", "equals": True}
    text = b"-- A vacation.\n--- @variable vacation: true during a vacation\nreturn {}"
    declares = Source(name="config/automations/v.lua", text=text)
    assert sentences(names(declares), conditions=[condition]) == []
    assert sentences(names(), conditions=[condition]) != []


def test_a_computed_name_counts_only_if_the_call_can_happen() -> None:
    module = Source(name="config/scripts/deep/climate.lua", text=b"ctx:set(memory, 1)")
    user = Source(name="config/automations/a.lua", text=b'local climate = require("deep.climate")')
    trigger = {"type": "variable_change", "name": "vaction"}
    for sources, called, is_named in (
        ([module], [module], True),
        ([module, user], [module], True),
        ([module, user], [module, user], False),
    ):
        known = replace(names(), sources=sources, called=called, modules={"deep.climate": module})
        assert bool(sentences(known, trigger=trigger)) == is_named, called


def test_a_required_module_must_exist() -> None:
    text = b"""local a = require("climat") local b = require 'climate'
local c = require("deep.nope") -- require("comment")
local d = require(name) pcall(require, "x") local e = other.require("y") local f = require("z" .. name)"""
    user = Source(name="config/automations/a.lua", text=text)
    modules = {"climate": Source(name="config/scripts/climate.lua", text=b"return {}")}
    assert [(each.line, each.message) for each in replace(names(), modules=modules).inspect(user)] == [
        (1, "require names 'climat', but there is no such module; did you mean climate?"),
        (2, "require names 'deep.nope', but there is no such module; add deep/nope.lua to the folder of [scripts]"),
    ]
    assert [*names().inspect(user)] == [], "unknown modules"
    disabled = replace(names(), modules={}, are_scripts_enabled=False)
    assert [each.message for each in disabled.inspect(user)] == [
        f"require names '{name}', but scripts are disabled; set scripts.enabled = true"
        for name in ("climat", "climate", "deep.nope")
    ]


def test_an_unreadable_module_is_not_missing(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "climate.lua").write_bytes(b"\xff")
    folder = Folder(path=tmp_path, name="config/scripts", is_deep=True)
    user = Source(name="config/automations/a.lua", text=b'local climate = require("deep.climate")')
    known = replace(names(), modules=modules_of(folder, folder.read()))
    assert [*known.inspect(user)] == []


def test_a_module_in_an_unreadable_folder_is_not_reported_as_missing() -> None:
    folder = Folder(path=Path("config/scripts"), name="config/scripts", is_deep=True)
    user = Source(name="a.lua", text=b'local climate = require("deep.er.climate") local lost = require("lost")')
    for unreadable in ("config/scripts/deep", "config/scripts/deep/er", "config/scripts"):
        fault = Fault(unreadable, 0, "the folder cannot be read: Permission denied")
        modules = modules_of(folder, Contents(sources=(), faults=(fault,)))
        found = [str(each) for each in replace(names(), modules=modules).inspect(user)]
        assert f"names 'deep.er.climate', but the folder {unreadable} cannot be read" in found[0]
        assert ("no such module" in found[1]) is (unreadable != "config/scripts")


def test_an_announced_attribute_without_a_value_is_known() -> None:
    metadata = Metadata(source="mqtt", vendor_specific={"attributes": ["occupancy"]})
    known = names().with_devices([replace(device({}, MOTION), metadata=metadata)], Layout())
    assert sentences(known, trigger={**MOVES}) == []
    [sentence] = sentences(known, trigger={**CHANGE, "device_id": MOTION, "attribute": "custom.mqtt.occupancy"})
    assert sentence.endswith("did you mean occupancy?")


async def test_names_are_checked_a_minute_after_the_start_and_after_each_reload(tmp_path: Path) -> None:
    asked: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def view(past: Mapping[str, PastNames], _: object) -> tuple[HomeNames, list[Any]]:
        assert asyncio.get_running_loop() is loop, "the home is read on the loop alone"
        asked.put_nowait({**past})
        return names(), []

    card = Card()
    async with (
        bench(tmp_path, automation()) as it,
        NameWatcher(it.bus, it.clock, card, view, lambda: True) as watcher,
    ):
        it.bus.publish(DeviceEvent(device_id=LAMP, event="press", data={}))
        await it.pass_by(30)
        it.show()
        watcher.recheck()
        assert asked.empty()
        await it.pass_by(40)
        watcher.recheck()
        assert await asked.get() == {LAMP: PastNames(events={"press"})}
        it.show()
        it.bus.publish(CatalogReloaded(target="automations", loaded_count=1, faults=(), duration_ms=1))
        assert await asked.get() == {LAMP: PastNames(events={"press"})}
        assert asked.empty()
        assert read_past(card) == {LAMP: PastNames(events={"press"})}, (
            "so that it is known after a restart, and to `lares check`"
        )
        it.bus.publish(change({"power": "on", "battery": 80}, {"power": "on"}))
        it.bus.publish(change({"power": "on"}, {"power": "off"}))
        assert read_past(card) == {LAMP: PastNames(events={"press"}, attributes={"battery"})}
        it.bus.publish(DeviceRemoved(device_id=LAMP))
        assert read_past(card) == {}


async def test_one_check_of_names_runs_at_a_time(tmp_path: Path) -> None:
    asked: asyncio.Queue[None] = asyncio.Queue()
    may_end = asyncio.Event()

    async def view(*_: object) -> tuple[HomeNames, list[Any]]:
        asked.put_nowait(None)
        await may_end.wait()
        return names(), []

    async with bench(tmp_path, automation()) as it, NameWatcher(it.bus, it.clock, Card(), view, lambda: True):
        await it.pass_by(70)
        for _ in range(5):
            it.bus.publish(CatalogReloaded(target="automations", loaded_count=1, faults=(), duration_ms=1))
            await asyncio.sleep(0)
        assert asked.qsize() == 1
        may_end.set()
        for _ in range(2):
            await asked.get()
        await it.pass_by(1)
        assert asked.empty(), "the other reloads share the second check"


async def test_simultaneous_callers_share_the_names_of_the_home(tmp_path: Path) -> None:
    """Each copy of the names has thousands of objects, which must also be freed."""
    views: list[HomeNames] = []

    async def view(*_: object) -> tuple[HomeNames, list[Any]]:
        await asyncio.sleep(0)
        views.append(names())
        return views[-1], []

    async with (
        bench(tmp_path, automation()) as it,
        NameWatcher(it.bus, it.clock, Card(), view, lambda: True) as watcher,
    ):
        found = await asyncio.gather(*(watcher.find_known() for _ in range(16)))
    assert len(views) == 1
    assert len({id(each.near) for each in found}) == 16, "each caller searches for its own nearest names"


def test_an_unknown_name_in_a_call_causes_a_warning_with_its_line() -> None:
    known = HomeNames(
        adapters=["elgato_lights", "tv"], rooms=["den", "hall"], groups=["downstairs"], operations={"tv": None}
    )
    source = Source(name="config/scenes/a.lua", text=b"#!/lua\n" + LINES.encode())
    assert list(map(str, known.inspect(source))) == [
        "config/scenes/a.lua:3: ctx:command names 'elgato:light:0', but there is no section [adapters.elgato]; "
        "did you mean elgato_lights:light:0?",
        "config/scenes/a.lua:4: ctx:command_room names 'hal', but there is no such room; did you mean hall?",
        "config/scenes/a.lua:5: ctx:command_group names 'upstairs', but there is no such group; did you mean "
        "downstairs?",
        "config/scenes/a.lua:6: ctx:invoke names 'tw:info', but there is no section [adapters.tw]",
        "config/scenes/a.lua:7: ctx:get_group names 'x', but there is no such group",
        "config/scenes/a.lua:9: ctx:get_room names 'haal', but there is no such room; did you mean hall?",
        "config/scenes/a.lua:9: ctx:get_device names 'tw:a', but there is no section [adapters.tw]",
        "config/scenes/a.lua:10: ctx:snapshot names 'tw:b', but there is no section [adapters.tw]",
        "config/scenes/a.lua:10: ctx:snapshot names 'tw:c', but there is no section [adapters.tw]",
    ]


LINES = """
  ctx:command("elgato:light:0", { capability = "power", action = "on" }) -- ctx:command("x:y")
  c:command_room ( 'hal' , on)
  ctx:command_group("upstairs", on) ctx:list_room_devices("hall") ctx:wait_for("tv:tv", condition)
  ctx:invoke("tw:info") ctx:invoke("tv:any")
  ctx:get_group("x") ctx:command(id, on) ctx:command("x:" .. id, on) ctx:command("a\\\\tb", on) command("x:y")
  ctx:command([[x:y]], on) ctx.command("x:y") ctx:command("x:y" or id, on)
  ctx:get_room("haal") ctx:get_device("tw:a")
  ctx:snapshot({ "tw:b", 'tw:c', "tv:tv", "tw:" .. id, id, [1] = "tw:d" }) print({ "tw:e" })
"""


def test_a_warning_has_the_path_of_the_wrong_name() -> None:
    known = HomeNames(adapters=["desk"], rooms=["den"])
    fields: dict[str, Any] = {
        "triggers": [{"type": "timer", "name": "t"}, {"type": "device_event", "room_id": "dn"}],
        "conditions": [{"type": "any", "conditions": [{**STATE, "device_id": "dsk:x", "attribute": "power"}]}],
    }
    fields["conditions"][0]["conditions"][0]["equals"] = "on"
    definition = parse({"id": "a", "name": "A", "execute": FUNCTION, **fields}).definition
    assert definition is not None
    assert list(map(str, known.warnings_of(definition))) == [
        "triggers[2].room_id names 'dn', but there is no such room; did you mean den?",
        "conditions[1].conditions[1].device_id names 'dsk:x', but there is no section [adapters.dsk]; "
        "did you mean desk:x?",
    ]


def test_an_announced_event_is_known_before_it_is_sent() -> None:
    known = names().with_devices([BUTTON_ITSELF, device({})], Layout(), {BUTTON: PastNames(events={"double"})})
    assert sentences(known, trigger={**PRESS, "event": "hold"}) == []
    [wrong] = sentences(known, trigger={**PRESS, "event": "holt"})
    assert wrong.endswith("did you mean hold?")


def test_an_attribute_that_a_device_accepts_or_once_showed_is_known() -> None:
    lamp = replace(device({"power": "off"}), commands=(CommandSpec(capability="brightness", actions=("set",)),))
    known = names().with_devices([lamp], Layout(), {LAMP: PastNames(attributes={"color_temperature"})})
    assert sentences(known, trigger={**CHANGE, "device_id": LAMP, "attribute": "color_temperature"}) == []
    assert sentences(known, trigger={**CHANGE, "device_id": LAMP, "attribute": "brightness"}) == []
    [wrong] = sentences(known, trigger={**CHANGE, "device_id": LAMP, "attribute": "battery"})
    assert wrong.endswith("it has reported brightness, color_temperature, power")


def test_without_known_devices_no_name_is_missing() -> None:
    assert sentences(replace(names(), devices=None), trigger=MOVES) == []
    [sentence] = sentences(replace(names(), devices={}), trigger=MOVES)
    assert sentence == f"trigger.device_id names '{MOTION}', but there is no such device"


WAITS: list[tuple[dict[str, Any], str]] = [
    (
        {**MOVES, "equals": "occupied", "duration_secs": 5},
        "until 'mqtt:hall_motion' reports occupancy = 'occupied' for 5 s; it reports occupancy = 'unoccupied'",
    ),
    (
        {**MOVES, "equals": "unoccupied"},
        "until 'mqtt:hall_motion' reports occupancy = 'unoccupied'; it already reports occupancy = 'unoccupied'"
        ", so the value must change first",
    ),
    (
        {**CHANGE, "device_id": MOTION, "attribute": "motion"},
        "until 'mqtt:hall_motion' reports any change of motion; it reports no motion, but occupancy; "
        "motion has never had a value; its first value does not fire",
    ),
    (
        {**CHANGE, "device_id": "mqtt:button", "attribute": "battery"},
        "until 'mqtt:button' reports any change of battery; it reports nothing now; "
        "battery has never had a value; its first value does not fire",
    ),
    ({**CHANGE, "device_id": LAMP}, "until 'desk:light:0' changes; there is no device 'desk:light:0'"),
    ({**CHANGE, "room_id": "den"}, "until a device in room 'den' changes"),
    ({**PRESS, "event": "doubel"}, "until 'mqtt:button' sends doubel; it sends single, hold"),
    ({**PRESS, "device_id": LAMP}, "until 'desk:light:0' sends any event; there is no device 'desk:light:0'"),
    ({"type": "device_event", "group_id": "all", "event": "single"}, "until a device of group 'all' sends single"),
    ({"type": "variable_change", "name": "mode"}, "until variable mode changes; the variable is 'away'"),
    (
        {"type": "variable_change", "name": "mode", "equals": "away"},
        "for variable mode = 'away'; the variable is already 'away', so the value must change first",
    ),
    ({"type": "variable_change", "name": "x", "above": 3}, "for variable x above 3; the variable is not set"),
    ({"type": "timer", "name": "off"}, "until the timer 'off' ends; the timer is not running"),
    ({"type": "adapter_lifecycle"}, "until an adapter starts"),
    ({"type": "adapter_lifecycle", "adapter": "desk"}, "until the adapter 'desk' starts"),
    ({"type": "system_error", "contains": "disk"}, "until an error message contains 'disk'"),
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
        "blocked: occupancy of 'mqtt:hall_motion' = 'unoccupied' (must be 'occupied')",
    ),
    ({"type": "time_window", "start": "22:00", "end": "06:00"}, "blocked: time = 14:00 (must be 22:00 to 06:00)"),
    ({"type": "time_window", "start": "08:00", "end": "20:00"}, "holds: time = 14:00 (must be 08:00 to 20:00)"),
    ({"type": "sun_position", "after": "sunset"}, "blocked: time = 14:00 (must be after sunset (21:19))"),
    ({"type": "weekday", "days": ["sat", "sun"]}, "blocked: day = mon (must be sat, sun)"),
    ({"type": "date_range", "from": "12-01", "to": "01-06"}, "blocked: date = 06-01 (must be 12-01 to 01-06)"),
    ({"type": "room_state", "room_id": "den", "min_devices": 2}, "blocked: room 'den' not found"),
    ({"type": "variable", "name": "mode", "equals": "away"}, "holds: mode = 'away' (must be 'away')"),
    ({"type": "variable", "name": "x", "equals": 1}, "blocked: variable 'x' is not set (must be 1)"),
]


@each_row(
    ("condition", "output"),
    [
        (
            {"type": "none", "conditions": [{"type": "variable", "name": "mode", "equals": "away"}]},
            ["condition 1.1: blocked: mode = 'away' (must not be)"],
        ),
        (
            {"type": "none", "conditions": [{"type": "weekday", "days": ["sat"]}]},
            ["condition 1.1: holds: day = mon (must not be sat)"],
        ),
        (
            {"type": "any", "conditions": [{"type": "weekday", "days": [day]} for day in ("sat", "mon")]},
            [
                "condition 1: holds: any of 2",
                "condition 1.1: does not hold: day = mon (must be sat)",
                "condition 1.2: holds: day = mon (must be mon)",
            ],
        ),
        (
            {"type": "all", "conditions": [{"type": "weekday", "days": ["sat"]}]},
            ["condition 1.1: blocked: day = mon (must be sat)"],
        ),
    ],
)
def test_why_names_the_blocking_condition_in_combinations(condition: dict[str, Any], output: list[str]) -> None:
    assert words({"type": "interval", "every_secs": 60}, condition)[1:] == output


AT = datetime.fromisoformat("2026-06-01T12:00:00Z")


@each_row(("trigger", "output"), WAITS)
def test_why_shows_the_condition_of_a_trigger(trigger: dict[str, Any], output: str) -> None:
    assert words(trigger)[0] == f"waits {output}"


@each_row(("condition", "output"), NEEDS)
def test_why_shows_the_requirement_of_a_condition(condition: dict[str, Any], output: str) -> None:
    sentences = words({"type": "interval", "every_secs": 60}, condition)[1:]
    assert sentences == [f"condition 1: {output}"]


def words(trigger: dict[str, Any], *conditions: dict[str, Any]) -> list[str]:
    """Return the messages about an automation, on a Monday at 14:00 in Berlin."""
    app = home(device({"occupancy": "unoccupied"}, MOTION), BUTTON_ITSELF, variables={"mode": "away"})
    fields = {"id": "a", "name": "A", "execute": FUNCTION, "trigger": trigger, "conditions": list(conditions)}
    definition = parse(fields).definition
    assert definition is not None
    return [*definition.explain(app, AT)]


async def unused_view(*_: object) -> Any:
    raise AssertionError


async def test_removed_devices_are_stored_only_on_request_and_a_return_is_stored_only_if_the_removal_was() -> None:
    card, bus = Card(), Bus()

    def add(id_: str) -> None:
        bus.publish(change(None, {"power": "on"}, id_))

    async with NameWatcher(bus, VirtualClock(NOW), card, unused_view, lambda: False) as watcher:
        for number in range(3):
            bus.publish(DeviceRemoved(device_id=f"a:{number}", name="A"))
            add(f"b:{number}")
        assert [*watcher.list_removed()] == ["a:0", "a:1", "a:2"] and card.values == {}
        add("a:1")
        watcher.store_removals()
        assert sorted(card.values) == ["removed/a:0", "removed/a:2"]
        add("a:0")
        assert [*card.values] == ["removed/a:2"] and [*watcher.list_removed()] == ["a:2"]


async def test_the_newest_removed_devices_need_few_objects_also_after_a_restart() -> None:
    """After a flood of devices, each small object would keep a page in use."""
    card, bus, clock = Card(), Bus(), VirtualClock(NOW)
    newest = [f"a:{number}" for number in range(100, 100 + MAX_REMOVED_DEVICES)]
    for _ in range(2):
        async with NameWatcher(bus, clock, card, unused_view, lambda: False) as watcher:
            tracemalloc.start()
            try:
                for number in range(100 + MAX_REMOVED_DEVICES):
                    clock.suspend(1)
                    bus.publish(DeviceRemoved(device_id=f"a:{number}", name="A"))
                    if number % 70 == 0:
                        watcher.store_removals()
                watcher.store_removals()
                kept_here = tracemalloc.Filter(inclusive=True, filename_pattern="*/names/name_watcher.py")
                found = tracemalloc.take_snapshot().filter_traces([kept_here]).traces
            finally:
                tracemalloc.stop()
            assert [*watcher.list_removed()] == newest
            assert {*card.values} == {f"removed/{each}" for each in newest}
            assert len(found) <= MAX_REMOVED_DEVICES + 50  # the keys of the card


async def test_the_names_of_all_devices_together_are_limited() -> None:
    """A device can invent names, and 2,000 devices have 400,000 names."""
    bus, per_name = Bus(), NAME_OVERHEAD_BYTES + 256
    per_device = MAX_PAST_NAMES * per_name
    names = [f"{number:03}".ljust(256, "e") for number in range(MAX_PAST_NAMES)]
    card = Card({f"sent/a:{number}": {"events": names} for number in range(MAX_PAST_BYTES // per_device)})

    def is_stored_after(device_id: str, event: str) -> bool:
        bus.publish(DeviceEvent(device_id=device_id, event=event, data={}, alias=None))
        past = read_past(card).get(device_id)
        return past is not None and event in past.events

    async with NameWatcher(bus, VirtualClock(NOW), card, unused_view, lambda: False):
        assert all(is_stored_after("a:new", name) for name in names[: MAX_PAST_BYTES % per_device // per_name + 1])
        assert not is_stored_after("a:new", "single") and not is_stored_after("a:newer", "single")
        bus.publish(DeviceRemoved(device_id="a:1", name="A"))
        assert is_stored_after("a:newer", "single")
        assert not is_stored_after("a:2", "single")  # it already has too many names


def test_stored_names_in_another_form_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    card = Card({"sent/a:1": ["single"], "sent/a:2": {"events": ["double"]}, "removed/a:3": 7})
    assert read_past(card) == {"a:2": PastNames(events={"double"})} and read_removed(card) == {}
    assert "the stored value 'sent/a:1' is ignored" in caplog.text


@each_row(
    ("shown", "equals", "output"),
    [
        (
            3,
            "3",
            "is '3', a text, which never equals custom.x.y: device 'mqtt:x' reports 3, a number; write equals = 3",
        ),
        (
            "3",
            3,
            "is 3, a number, which never equals custom.x.y: device 'mqtt:x' reports '3', a text; write equals = '3'",
        ),
        (True, "on", "is 'on', a text, which never equals custom.x.y: device 'mqtt:x' reports true, a boolean"),
        (3, 4, None),
        (3, 4.0, None),
        ("a", "b", None),
        (None, "b", None),
    ],
)
def test_a_value_of_a_type_that_a_device_never_shows_is_reported(shown: Any, equals: Any, output: str | None) -> None:
    it = device({} if shown is None else {"custom.x.y": shown}, "mqtt:x")
    known = HomeNames(adapters=["mqtt"]).with_devices(
        [it], Layout(), {"mqtt:x": PastNames(attributes={"custom.x.y"})}
    )
    compared = {"device_id": "mqtt:x", "attribute": "custom.x.y", "equals": equals}
    for field, where in (("trigger", "trigger"), ("conditions", "conditions[1]")):
        trigger = {**CHANGE, **compared} if field == "trigger" else {"type": "interval", "every_secs": 60}
        conditions = [] if field == "trigger" else [{"type": "device_state", **compared}]
        assert sentences(known, trigger=trigger, conditions=conditions) == (
            [] if output is None else [f"{where}.equals {output}"]
        )


@each_row(
    ("attribute", "units", "compared", "output"),
    [
        (
            "power_consumption",
            ["kW"],
            {"above": 10},
            "above is 10, but mqtt:x reports power_consumption in kW, so 10",
        ),
        (
            "power_consumption",
            ["kW"],
            {"below": 0.5},
            "below is 0.5, but mqtt:x reports power_consumption in kW, so 0",
        ),
        ("power_consumption", ["W", "kW"], {"above": 10}, None),
        ("pressure", ["kPa"], {"equals": 100}, "equals is 100, but mqtt:x reports pressure in kPa, so 100 means 100"),
        ("pressure", ["kPa"], {"equals": {"value": 100, "unit": "kPa"}}, None),
        ("pressure", ["kPa"], {}, None),
        ("temperature", ["celsius"], {"above": 10}, None),
        (
            "temperature",
            ["°F", "°C"],
            {"above": 10},
            "above is 10, but mqtt:x reports temperature in °F, so 10 means",
        ),
        ("temperature", ["°F", "°F"], {"above": 10}, None),
        ("temperature", ["°F", "fahrenheit"], {"above": 10}, None),
    ],
)
def test_a_comparison_with_a_value_in_an_unusual_unit_is_reported(
    attribute: str, units: list[str], compared: dict[str, Any], output: str | None
) -> None:
    devices = [
        device({attribute: {"value": 1, "unit": unit}}, id_)
        for unit, id_ in zip(units, ("mqtt:x", "mqtt:y"), strict=False)
    ]
    known = HomeNames(adapters=["mqtt"]).with_devices(devices, Layout())
    trigger = {**CHANGE, "device_id": "mqtt:x", "attribute": attribute, **compared}
    found = sentences(known, trigger=trigger)
    if output is None:
        assert found == []
    else:
        assert len(found) == 1 and found[0].startswith(f"trigger.{output}"), found
