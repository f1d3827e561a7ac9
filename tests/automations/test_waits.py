"""Waits, and automations with several triggers. Each trigger has a separate wait for each device. Waits survive a
restart."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from appliance.automations import waits
from appliance.automations.active_triggers import RunningWaits, Wait
from appliance.automations.automation_states import StoredWait
from appliance.automations.engine import MATCHES_OF_EVENT, MAX_DISPATCHED_AT_ONCE, MAX_UNDISPATCHED, TOO_MANY_EVENTS
from appliance.home.events import DeviceEvent, HookCalled
from appliance.home.values import Value
from tests.fakes.automations import LAMP, Card, Play, Stage, automation, bench

OTHER = "desk:light:1"
HOLDS = {"type": "device_state_change", "device_id": LAMP, "attribute": "power", "equals": "on", "duration_secs": 600}
RESTS = {"type": "device_state_change", "device_id": LAMP, "attribute": "brightness", "debounce_secs": 600}


@pytest.mark.parametrize("hours", [0, 8, -8])
@pytest.mark.parametrize(
    ("trigger", "first", "then", "again", "fires_after"),
    [
        (HOLDS, {"power": "on"}, {}, {}, 240),
        (HOLDS, {"power": "on"}, {"brightness": 99}, {}, 240),
        (HOLDS, {"power": "on"}, {"power": "off"}, {}, None),
        (HOLDS, {"power": "on"}, {"power": "off"}, {"power": "on"}, 600),
        (RESTS, {"brightness": 50}, {}, {}, 240),
        (RESTS, {"brightness": 50}, {"brightness": 51}, {}, None),
    ],
)
async def test_an_interrupted_wait_continues_if_the_first_observation_matches(
    trigger: dict[str, Any],
    first: dict[str, Any],
    then: dict[str, Any],
    again: dict[str, Any],
    fires_after: int | None,
    hours: int,
    tmp_path: Path,
) -> None:
    card = Card()
    async with bench(tmp_path, automation(trigger), card=card) as it:
        it.show(**first)
        await it.pass_by(100)
        it.clock.set(it.clock.now() + timedelta(hours=hours))
        await it.pass_by(200)
        assert it.fired == []
        stopped_at = it.clock.now()
    async with bench(tmp_path, automation(trigger), card=card, start=stopped_at) as it:
        await it.pass_by(60)
        it.show(**then)
        if again:
            it.show(**again)
        await it.pass_by((fires_after or 10_000) - 1)
        assert it.fired == []
        await it.pass_by(1)
        assert it.fired == ([] if fires_after is None else ["a"])
    assert not card.items("wait/"), "a wait that is over leaves nothing on the card"


async def test_a_wait_that_ended_while_the_hub_was_off_fires_with_the_first_observation(tmp_path: Path) -> None:
    card = Card()
    async with bench(tmp_path, automation(HOLDS), card=card) as it:
        it.show(power="on")
        await it.pass_by(300)
        stopped_at = it.clock.now()
    async with bench(tmp_path, automation(HOLDS), card=card, start=stopped_at.replace(hour=18)) as it:
        assert it.fired == []
        it.show()
        await it.pass_by(1)
        assert it.fired == ["a"] and it.events[0]["previous_value"] == "off"
        it.show(brightness=3)
        await it.pass_by(10_000)
        assert it.fired == ["a"]


async def test_a_stored_wait_belongs_to_its_device_and_automation_even_if_their_ids_contain_spaces(
    tmp_path: Path,
) -> None:
    card, device_id = Card(), "desk:front lamp"
    waiting = automation({**HOLDS, "device_id": device_id}, "evening lights")
    async with bench(tmp_path, waiting, card=card) as it:
        it.show(device_id, power="off")
        it.show(device_id, power="on")
        await it.pass_by(300)
        stopped_at = it.clock.now()
    async with bench(tmp_path, waiting, card=card, start=stopped_at) as it:
        it.show(device_id, power="on")
        await it.pass_by(301)
        assert it.fired == ["evening lights"]


async def test_every_device_of_a_list_room_or_group_has_its_own_wait(tmp_path: Path) -> None:
    both = {**HOLDS, "device_id": [LAMP, OTHER]}
    async with bench(tmp_path, automation(both)) as it:
        it.show(OTHER, power="off")
        it.show(LAMP, power="on")
        await it.pass_by(300)
        it.show(OTHER, power="on")
        it.show(LAMP, brightness=3)
        await it.pass_by(300)
        assert [event["device_id"] for event in it.events] == [LAMP]
        await it.pass_by(300)
        assert [event["device_id"] for event in it.events] == [LAMP, OTHER]


async def test_the_present_members_of_the_room_or_group_count(tmp_path: Path) -> None:
    room = {"type": "device_state_change", "room_id": "den", "attribute": "power"}
    group = {"type": "device_state_change", "group_id": "all", "attribute": "power"}
    press = {"type": "device_event", "room_id": "den", "event": "double"}
    definitions = [automation(room, "room"), automation(group, "group"), automation(press, "press")]
    async with bench(tmp_path, *definitions) as it:
        it.show(OTHER, power="off")
        it.registry.put_room("den", "Den")
        it.registry.assign_room(LAMP, "den")
        it.registry.put_group("all", "All", [OTHER])
        for device_id in (LAMP, OTHER):
            it.show(device_id, power="on")
        for event in ("single", "double"):
            it.bus.publish(DeviceEvent(device_id=LAMP, event=event, data={"n": 1}))
            it.bus.publish(DeviceEvent(device_id=OTHER, event=event, data={}))
        await it.drain()
        assert it.fired == ["room", "group", "press"]
        assert it.events[-1] == {"type": "device_event", "device_id": LAMP, "event": "double", "data": {"n": 1}}
        it.registry.assign_room(LAMP, None)
        it.registry.put_group("all", "All", [LAMP])
        for device_id in (LAMP, OTHER):
            it.show(device_id, power="off")
        await it.drain()
        assert it.fired == ["room", "group", "press", "group"]


async def test_a_wait_ends_if_the_device_leaves_the_room_or_group(tmp_path: Path) -> None:
    of = {"room": {"room_id": "den"}, "group": {"group_id": "all"}}
    waits = {"attribute": "power", "equals": "on", "duration_secs": 600}
    definitions = [automation({"type": "device_state_change", **waits, **of[name]}, name) for name in of]
    for leaves in (False, True):
        async with bench(tmp_path, *definitions) as it:
            it.show(LAMP, power="off")
            it.registry.put_room("den", "Den")
            it.registry.assign_room(LAMP, "den")
            it.registry.put_group("all", "All", [LAMP])
            it.show(LAMP, power="on")
            await it.pass_by(300)
            if leaves:
                it.registry.assign_room(LAMP, None)
                it.registry.remove_group("all")
            await it.pass_by(300)
            assert sorted(it.fired) == ([] if leaves else ["group", "room"])


async def test_each_of_several_triggers_fires_with_its_id(tmp_path: Path) -> None:
    triggers = [
        {"type": "interval", "every_secs": 100, "id": "beat"},
        {"type": "device_state_change", "device_id": LAMP, "attribute": "power"},
        {"type": "variable_change", "name": "mode", "equals": "away", "id": "mode"},
    ]
    definition = {"id": "a", "name": "A", "triggers": triggers}
    async with bench(tmp_path, definition) as it:
        it.show(power="on")
        it.variables.set("mode", "home", "variables")
        it.variables.set("mode", "away", "variables")
        await it.pass_by(60)
        await it.reload({**definition, "triggers": [*reversed(triggers)]})
        await it.pass_by(40)
        assert [event.get("trigger_id") for event in it.events] == [None, "mode", "beat"]
        assert it.events[1]["previous_value"] == "home"
        assert [str(each) for each in await it.parts.list_next("a")][:2] == [
            "2026-06-01 12:03:20+00:00",
            "2026-06-01 12:05:00+00:00",
        ]
        assert len(await it.parts.list_next("a")) == 10


@pytest.mark.parametrize(
    ("edited", "is_kept"),
    [
        ({**HOLDS, "duration_secs": 600.0}, True),
        ({**HOLDS, "device_id": [LAMP], "debounce_secs": None}, True),
        ({**HOLDS, "duration_secs": 601}, False),
        ({**HOLDS, "equals": "off"}, False),
        (None, False),
    ],
)
@pytest.mark.parametrize("is_restarted", [True, False])
async def test_a_wait_is_kept_only_for_an_equivalent_trigger(
    edited: dict[str, Any] | None, is_kept: bool, is_restarted: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "automations")
    card = Card()
    stated = {name: value for name, value in (edited or {}).items() if value is not None}
    definitions = [] if edited is None else [automation(stated)]
    async with bench(tmp_path, automation(HOLDS), card=card) as it:
        it.show(power="on")
        await it.pass_by(300)
        stopped_at = it.clock.now()
        if not is_restarted:
            await it.reload(*definitions)
            assert bool(card.values) is is_kept
    async with bench(tmp_path, *definitions, card=card, start=stopped_at) as it:
        assert bool(card.values) is is_kept
    is_told = "automation 'a': its trigger was edited, so its pending wait is discarded" in caplog.text
    assert is_told == (edited is not None and not is_kept)
    async with bench(tmp_path, automation(HOLDS), card=card, start=stopped_at) as it:
        it.show(power="on")
        await it.pass_by(301)
        assert it.fired == (["a"] if is_kept else [])


@pytest.mark.parametrize("is_bad", [False, True])
async def test_waits_of_version_0_1_are_read(is_bad: bool, tmp_path: Path) -> None:
    event = {"type": "device_state_change", "device_id": LAMP, "attribute": "power", "value": "on"}
    wait = {"began_at": 1780315200000, "event": event}
    card = Card({"automation/a": {"waits": {f"1244f9a87c448f90 {LAMP}": wait}}})
    card.is_bad = is_bad
    async with bench(tmp_path, automation(HOLDS), card=card) as it:
        key = it.parts.engine._active["a"][0].key
        assert card.values == {f"wait/{LAMP}\ta": {key: {"began_at": 1780315200000, "value": "on"}}}


async def test_a_fired_wait_is_deleted_from_the_card_before_its_execution_acts(tmp_path: Path) -> None:
    class Looking(Stage):
        def begin(self, source: Any, context: Any, event: Any, *, name: str, **given: Any) -> Play:
            self.card_then = dict(card.values)
            return super().begin(source, context, event, name=name, **given)

    stage, card = Looking(), Card()
    async with bench(tmp_path, automation(HOLDS), card=card, stage=stage) as it:
        it.show(power="on")
        await it.pass_by(601)
        assert it.fired == ["a"] and f"wait/{LAMP}\ta" not in stage.card_then


async def test_waits_that_end_together_are_removed_from_the_card_together(tmp_path: Path) -> None:
    writes: list[int] = []
    tasks: list[str] = []

    class CountingCard(Card):
        def put_later(self, key: str, value: Any, *, is_minor: bool = False) -> None:
            """Store no removal, because it waits for a flush."""
            if value is not None:
                super().put_later(key, value)

        async def put_many(self, values: Mapping[str, Any]) -> None:
            writes.append(len(values))
            tasks.extend(each.get_name() for each in asyncio.all_tasks())
            await super().put_many(values)

    lamps = [f"desk:light:{number}" for number in range(50)]
    async with bench(tmp_path, automation({**HOLDS, "device_id": lamps}), card=CountingCard()) as it:
        for lamp in lamps:
            it.show(lamp, power="off")
            it.show(lamp, power="on")
        await it.pass_by(600)
        assert it.fired and writes == [50]
        assert tasks.count("ends of waits") == 1, "50,000 tasks need much memory"


async def test_waits_whose_removal_ends_after_the_stop_fire_after_the_next_start(tmp_path: Path) -> None:
    class SlowCard(Card):
        async def put_many(self, values: Mapping[str, Any]) -> None:
            await is_free.wait()
            await super().put_many(values)

    is_free, card, lamps = asyncio.Event(), SlowCard(), [LAMP, OTHER]
    many = automation({**HOLDS, "device_id": lamps})
    async with bench(tmp_path, many, card=card) as it:
        for power in ("off", "on"):
            for lamp in lamps:
                it.show(lamp, power=power)
        await it.pass_by(600)
        it.parts.engine.disarm()
        is_free.set()
        await it.drain()
        assert it.fired == [] and len(card.items("wait/")) == 2
        stopped_at = it.clock.now()
    async with bench(tmp_path, many, card=card, start=stopped_at) as it:
        for lamp in lamps:
            it.show(lamp, power="on")
        await it.drain()
        assert sorted(event["device_id"] for event in it.events) == sorted(lamps)


async def test_a_new_wait_stores_only_the_waits_of_its_device(tmp_path: Path) -> None:
    sizes: list[int] = []

    class CountingCard(Card):
        def put_later(self, key: str, value: Any, *, is_minor: bool = False) -> None:
            sizes.append(len(json.dumps(value)))
            super().put_later(key, value, is_minor=is_minor)

    async with bench(tmp_path, automation({**HOLDS, "device_id": "*"}), card=CountingCard()) as it:
        for number in range(200):
            it.show(f"desk:light:{number}", power="off")
            it.show(f"desk:light:{number}", power="on")
        assert it.parts.due_times.count_waits("a") == len(sizes) == 200 and max(sizes) < 100


async def test_waits_of_one_trigger_end_at_their_times_although_earlier_ones_are_cancelled(tmp_path: Path) -> None:
    lamps = [f"desk:light:{number}" for number in range(100)]
    async with bench(tmp_path, automation({**HOLDS, "device_id": lamps})) as it:
        for lamp in lamps:
            it.show(lamp, power="off")
            it.show(lamp, power="on")
            await it.pass_by(1)
        for lamp in lamps[:-2]:
            it.show(lamp, power="off")
        ends = list(it.parts.due_times.iterate_waits("a"))
        assert [device_id for device_id, _ in ends] == lamps[-2:]
        assert it.parts.due_times.find_next("a") == ends[0][1]
        await it.pass_by(598)
        assert [event["device_id"] for event in it.events] == lamps[-2:-1]
        await it.pass_by(1)
        assert [event["device_id"] for event in it.events] == lamps[-2:]
        assert it.parts.due_times.find_next("a") is None and it.parts.due_times.count_waits("a") == 0


@pytest.mark.parametrize("is_stored", [False, True])
async def test_a_wait_that_fails_at_its_end_does_not_stop_the_waits_of_other_devices(
    is_stored: bool, tmp_path: Path
) -> None:
    class Forgetful(Card):
        def put_later(self, key: str, value: Any, *, is_minor: bool = False) -> None:
            """Store nothing, so that the waits fire without a write."""

    class FailingOnce(Stage):
        has_failed = False

        def has_room(self, *, is_alarm: bool) -> bool:
            if not self.has_failed:
                self.has_failed = True
                raise RuntimeError("this fault is on purpose")
            return super().has_room(is_alarm=is_alarm)

    both = automation({**HOLDS, "device_id": [LAMP, OTHER]})
    async with bench(tmp_path, both, card=Card() if is_stored else Forgetful(), stage=FailingOnce()) as it:
        for lamp in (LAMP, OTHER):
            it.show(lamp, power="off")
            it.show(lamp, power="on")
        await it.pass_by(601)
        assert [event["device_id"] for event in it.events] == [OTHER]


def test_the_ends_of_cancelled_waits_are_removed() -> None:
    waits = RunningWaits()
    for number in range(1_000):
        waits.add(Wait(number, "lamp", StoredWait(began_at=number)))
        waits.pop("lamp")
    assert waits.find_first() is None and not waits._heap


def test_waits_keep_no_memory_after_thousands_of_them_have_ended() -> None:
    waits = RunningWaits()
    for number in range(1_000):
        waits.add(Wait(number, f"lamp{number}", StoredWait(began_at=number)))
    for number in range(998):
        waits.pop(f"lamp{number}")
    assert len(waits) == 2 and len(waits._heap) <= 4
    waits.pop("lamp998")
    waits.pop("lamp999")
    assert not waits._heap and sys.getsizeof(waits._waits) < 1_000


async def test_ended_waits_of_many_devices_leave_no_large_dictionaries(tmp_path: Path) -> None:
    async with bench(tmp_path, automation({**HOLDS, "device_id": "*"}, "many")) as it:
        for power in ("off", "on", "off"):
            for number in range(500):
                it.show(f"desk:light:{number}", power=power)
            await it.drain()
            if power == "on":
                assert it.parts.due_times.count_waits("many") == 500
        by_device = (it.parts.engine._waits._by_device, it.parts.states.of("many").waits)
        assert [sys.getsizeof(each) < 1_000 for each in by_device] == [True, True]


async def test_the_waits_that_an_event_begins_share_their_data(tmp_path: Path) -> None:
    many = automation(triggers=[{**HOLDS, "duration_secs": 600 + number} for number in range(20)])
    del many["trigger"]
    async with bench(tmp_path, many) as it:
        it.show(LAMP, power="off")
        it.show(LAMP, power="on")
        await it.drain()
        (waits,) = it.parts.states.of(many["id"]).waits.values()
        assert len(waits) == 20 and len({id(each) for each in waits.values()}) == 1


async def test_beyond_the_limit_only_waits_of_alarms_begin(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "MAX_WAITS", limit := 4_000)

    class Forgetful(Card):
        def put_later(self, key: str, value: Any, *, is_minor: bool = False) -> None:
            """Store nothing, because this test begins thousands of waits."""

    power = {**HOLDS, "device_id": "*"}
    many = automation(id_="many", triggers=[{**power, "duration_secs": 600 + number} for number in range(200)])
    del many["trigger"]
    smoke = automation({**power, "attribute": "smoke", "equals": True}, "smoke")
    async with bench(tmp_path, many, smoke, card=Forgetful()) as it:
        count = limit // 200 + 3
        for number in range(count):
            it.show(f"desk:light:{number}", power="off", smoke=False)
            it.show(f"desk:light:{number}", power="on", smoke=False)
        await it.drain()
        assert it.parts.due_times.count_waits("many") == limit
        it.show(LAMP, power="on", smoke=True)
        await it.drain()
        assert it.parts.due_times.count_waits("smoke") == 1, "an alarm is not lost"
        assert [each.getMessage() for each in caplog.records] == [
            "automation 'many': a wait did not begin: 4000 waits are running; its trigger does not fire; "
            "use fewer triggers with duration_secs or debounce_secs, or fewer devices"
        ]
        it.show("desk:light:1", power="off", smoke=False)
        it.show(f"desk:light:{count - 1}", power="off", smoke=False)
        it.show(f"desk:light:{count - 1}", power="on", smoke=False)
        await it.drain()
        assert it.parts.due_times.count_waits("many") == limit - 1, "ended waits make room"


async def test_an_event_that_matches_hundreds_of_triggers_fires_all(tmp_path: Path) -> None:
    power = {"type": "device_state_change", "device_id": LAMP, "attribute": "power"}
    count = 3 * MAX_DISPATCHED_AT_ONCE
    many = automation(id_="many", triggers=[{**power, "id": str(number)} for number in range(count)])
    del many["trigger"]
    async with bench(tmp_path, many, automation(power, "one")) as it:
        it.show(power="off")
        it.show(power="on")
        await it.drain()
        found = [str((entry.trigger_payload or {})["trigger_id"]) for entry in it.entries("many")]
        assert sorted(found, key=int) == [str(number) for number in range(count)] and len(it.entries("one")) == 1


async def test_alarms_overtake_earlier_events_that_wait_for_their_dispatch(tmp_path: Path) -> None:
    """Otherwise, an alarm would begin only after thousands of other automations."""
    power = {"type": "device_state_change", "device_id": "*", "attribute": "power"}
    smoke = {"type": "device_state_change", "device_id": LAMP, "attribute": "smoke"}
    others = [automation(power, f"other{number}") for number in range(3 * MAX_DISPATCHED_AT_ONCE)]
    async with bench(tmp_path, *others, automation(smoke, "smoke"), automation(power, "z")) as it:
        it.show(smoke=False)
        for values in ({"power": "on"}, {"power": "off", "smoke": True}, {"power": "on"}, {"smoke": False}):
            it.show(**values)
        await it.drain()
        assert it.fired[:2] == ["smoke", "smoke"]
        assert [event["value"] for event in it.events[:2]] == [True, False], "alarms keep their order"
        assert Counter(it.fired) == {"smoke": 2, "z": 3, **{each["id"]: 3 for each in others}}
        assert [event["value"] for event in it.events[2:]] == ["on"] * 97 + ["off"] * 97 + ["on"] * 97


@pytest.mark.slow
async def test_alarms_begin_although_too_many_events_wait_for_their_dispatch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    power = {"type": "device_state_change", "device_id": "*", "attribute": "power"}
    smoke = {"type": "device_state_change", "device_id": LAMP, "attribute": "smoke", "equals": True}
    others = [automation(power, f"other{number}") for number in range(MAX_DISPATCHED_AT_ONCE + 1)]
    async with bench(tmp_path, *others, automation(smoke, "smoke")) as it:
        it.show(power="off", smoke=False)
        await it.drain()
        for number in range(MAX_UNDISPATCHED // (len(others) + MATCHES_OF_EVENT) + 2):
            it.show(power="on" if number % 2 == 0 else "off")
        it.show(smoke=True)
        await it.drain()
        assert it.fired[0] == "smoke" and caplog.messages == [TOO_MANY_EVENTS % f"device '{LAMP}'"]


async def test_the_message_about_too_many_events_names_the_hook(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.automations.engine.MAX_UNDISPATCHED", 10 * MATCHES_OF_EVENT)
    automations = [
        automation({"type": "webhook", "hook": hook}, f"{hook}{number}")
        for number in range(MAX_DISPATCHED_AT_ONCE + 1)
        for hook in ("bell", "other")
    ]
    async with bench(tmp_path, *automations) as it:
        for hook in ("other", *["bell"] * 10):
            it.bus.publish(HookCalled(hook=hook, data={}, query={}))
        await it.drain()
        assert caplog.messages[:1] == [TOO_MANY_EVENTS % "hook 'bell'"]


async def test_a_wait_of_an_alarm_overtakes_events_and_ends_in_order(tmp_path: Path) -> None:
    power = {"type": "device_state_change", "device_id": "*", "attribute": "power"}
    smoke = {"type": "device_state_change", "device_id": "*", "attribute": "smoke", "equals": True}
    others = [automation(power, f"other{number}") for number in range(3 * MAX_DISPATCHED_AT_ONCE)]
    async with bench(tmp_path, *others, automation({**smoke, "duration_secs": 60}, "smoke")) as it:
        it.show(power="on", smoke=True)
        it.show(power="off", smoke=False)
        it.show(OTHER, power="on", smoke=True)
        await it.pass_by(60)
        assert [play.event["device_id"] for play in it.stage.plays if play.name == "smoke"] == [OTHER]


@pytest.mark.parametrize(
    ("attribute", "values", "is_virtual", "is_stored"),
    [
        ("smoke", (False, True), False, True),
        ("water_leak", (False, True), False, True),
        ("contact", ("closed", "open"), False, False),
        ("contact", ("closed", "open"), True, True),
    ],
)
@pytest.mark.parametrize("wait", ["duration_secs", "debounce_secs"])
async def test_waits_of_alarms_and_virtual_devices_are_stored_before_the_next_flush(
    attribute: str, values: tuple[Value, Value], is_virtual: bool, is_stored: bool, wait: str, tmp_path: Path
) -> None:
    class Unflushed(Card):
        def put_later(self, key: str, value: Any, *, is_minor: bool = False) -> None:
            """Store nothing, because the power fails before the flush."""

        async def put_many(self, values: Mapping[str, Any]) -> None:
            for key, value in values.items():
                super().put_later(key, value)

    trigger = automation(
        {"type": "device_state_change", "device_id": "*", "attribute": attribute, "equals": values[1], wait: 600}
    )
    card = Unflushed()
    async with bench(tmp_path, trigger, card=card) as it:
        it.vendor_specific["virtual"] = is_virtual
        for value in values:
            it.show(**{attribute: value})
        await it.pass_by(100)
        cut_at = it.clock.now()
    async with bench(tmp_path, trigger, card=card, start=cut_at) as it:
        it.show()
        await it.pass_by(499)
        assert it.fired == []
        await it.pass_by(1)
        assert it.fired == (["a"] if is_stored else [])
        await it.pass_by(1_000)
    assert not card.items("wait/")
