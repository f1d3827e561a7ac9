"""The TV adapter, as the specification's tables and the contract tell it, over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.roku_tv.simulator import TvSimulator
from tests.fakes.clock import VirtualClock
from tests.fakes.house import TV, House, Received, open_house
from tests.fakes.patience import until

CAPTURES = Path(__file__).parents[1] / "fixtures" / "roku"
INFO = ("GET", "/query/device-info")


def _press(key: str) -> tuple[str, str]:
    return ("POST", f"/keypress/{key}")


async def power(house: House, action: str) -> Received:
    """Command the TV's power."""
    return await house.command(TV, "power", action)


async def shown(house: House) -> Any:
    """The power that the hub shows."""
    return (await house.device(TV))["attributes"]["power"]


# --- every row of the table ----------------------------------------------------------------------


async def test_each_action_presses_its_key_and_the_device_shows_what_the_tv_then_says(house: House) -> None:
    for action, key, shows, mode in [
        ("off", "PowerOff", "off", "Ready"),
        ("off", "PowerOff", "off", "Ready"),
        ("on", "PowerOn", "on", "PowerOn"),
        ("on", "PowerOn", "on", "PowerOn"),
        ("toggle", "Power", "off", "Ready"),
        ("toggle", "Power", "on", "PowerOn"),
    ]:
        house.tv.keys.clear()
        answer = await power(house, action)
        assert (answer.status, answer.json) == (200, {"status": "ok"})
        device = await house.device(TV)
        assert (device["attributes"], house.tv.keys) == ({"power": shows, "state": "online"}, [key])
        assert device["metadata"]["vendor_specific"]["power_mode"] == mode == house.tv.power_mode


async def test_a_command_is_a_reading_a_press_and_a_reading(quiet: House) -> None:
    quiet.tv.requests.clear()
    async with quiet.stream() as frames:
        await power(quiet, "off")
        state = {"power": "off", "state": "online"}
        assert await quiet.heard(frames) == [{"type": "device.state_changed", "id": TV, "state": state}]
        await power(quiet, "off")
        assert await quiet.heard(frames) == []
    assert quiet.tv.requests == [INFO, _press("PowerOff"), INFO] * 2


@pytest.mark.parametrize(
    ("capture", "shows", "vendor"),
    [
        ("device-info", "on", {"power_mode": "PowerOn", "friendly_name": "My Roku 3", "model_name": "Roku 3"}),
        ("device-info-standby", "off", {"power_mode": "Ready", "friendly_name": "My Roku 3", "model_name": "Roku 3"}),
        (
            "device-info-power-off",
            "off",
            {"power_mode": "PowerOff", "friendly_name": "My Roku 3", "model_name": "Roku 3"},
        ),
        (
            "device-info-3500x",
            "on",
            {"power_mode": "PowerOn", "friendly_name": "My Roku Stick", "model_name": "Roku Stick"},
        ),
    ],
)
async def test_real_devices_are_shown_and_switched(capture: str, shows: str, vendor: dict[str, Any]) -> None:
    text = (CAPTURES / f"{capture}.xml").read_text(encoding="utf-8")
    async with open_house(tv=TvSimulator(device_info=text)) as house:
        device = await house.device(TV)
        assert device["attributes"] == {"power": shows, "state": "online"}
        assert device["metadata"] == {"source": "roku_tv", "accuracy": None, "vendor_specific": vendor}
        assert (await power(house, "toggle")).status == 200
        assert await shown(house) == {"on": "off", "off": "on"}[shows]


async def test_a_stick_that_tells_nothing_of_power_is_on_and_pressing_is_a_success(
    quiet: House, clock: VirtualClock
) -> None:
    quiet.tv.power_mode = None
    async with quiet.stream() as frames:
        await clock.advance(1, sleepers=3)
        assert await quiet.heard(frames) == [], "on before and on after; only the metadata changed"
        assert (await quiet.device(TV))["metadata"]["vendor_specific"]["power_mode"] is None
        assert (await power(quiet, "on")).status == 200
        quiet.tv.requests.clear()
        commanding = asyncio.ensure_future(power(quiet, "off"))
        for seconds in (1, 1, 2):
            await until(lambda: clock.sleepers == 4)
            await clock.advance(seconds, sleepers=3)
        assert (await commanding).status == 200
        assert await quiet.heard(frames) == []
    assert (await shown(quiet), quiet.tv.keys) == ("on", ["PowerOn", "PowerOff"])


# --- reading again -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lag", "waits", "shows"), [(0.5, [1], "off"), (1.5, [1, 1], "off"), (3, [1, 1, 2], "off"), (9, [1, 1, 2], "on")]
)
async def test_a_tv_that_takes_its_time_is_read_again_after_1_2_and_4_seconds(
    clock: VirtualClock, lag: float, waits: list[int], shows: str
) -> None:
    async with open_house(clock=clock, tv=TvSimulator(clock=clock), poll_interval_secs=3600) as house:
        house.tv.faults.lag = lag
        house.tv.requests.clear()
        commanding = asyncio.ensure_future(power(house, "off"))
        for number, seconds in enumerate(waits):
            await until(lambda: clock.sleepers == 4)
            assert not commanding.done()
            assert house.tv.requests == [INFO, _press("PowerOff"), *[INFO] * (number + 1)]
            await clock.advance(seconds, sleepers=3)
        answer = await commanding
        assert (answer.status, answer.json) == (200, {"status": "ok"}), "an answered press is a success"
        assert house.tv.requests == [INFO, _press("PowerOff"), *[INFO] * (len(waits) + 1)]
        assert await shown(house) == shows


async def test_what_polls_see_meanwhile_is_left_out_so_that_the_power_does_not_flip(
    quiet: House, clock: VirtualClock
) -> None:
    quiet.tv.faults.lag = 1.5
    async with quiet.stream() as frames:
        commanding = asyncio.ensure_future(power(quiet, "toggle"))
        await until(lambda: clock.sleepers == 4)
        await clock.advance(1.9, sleepers=4)
        assert await quiet.heard(frames) == []
        await clock.advance(0.1, sleepers=3)
        assert (await commanding).status == 200
        await clock.advance(3, sleepers=3)
        assert [frame["state"]["power"] for frame in await quiet.heard(frames)] == ["off"]


# --- what goes wrong -----------------------------------------------------------------------------


async def test_a_tv_that_forbids_control_says_which_setting_to_change(quiet: House) -> None:
    quiet.tv.limited = True
    async with quiet.stream() as frames:
        answer = await power(quiet, "off")
        assert answer.status == 400
        assert answer.json == {
            "error": f"{quiet.tv.url} refuses to be controlled: on the TV, open Settings > System > Advanced system "
            "settings > Control by mobile apps > Network access and choose Default or Permissive",
            "code": "device_refused",
        }
        assert await quiet.heard(frames) == []
    assert (await quiet.device(TV))["attributes"] == {"power": "on", "state": "online"}


async def test_a_tv_that_forbids_everything_says_so_at_its_first_poll() -> None:
    tv = TvSimulator()
    tv.faults.status = 403
    async with open_house(tv=tv) as house:
        shown = (await house.get("/adapters/roku_tv")).json
        assert "Control by mobile apps" in shown["last_error"]
        assert (await house.get(f"/devices/{TV}")).status == 404


@pytest.mark.parametrize("action", ["on", "off", "toggle"])
async def test_a_press_that_was_not_answered_is_never_repeated(
    quiet: House, clock: VirtualClock, action: str
) -> None:
    quiet.tv.requests.clear()
    quiet.tv.faults.delay = 0.25
    commanding = asyncio.ensure_future(power(quiet, action))
    await until(lambda: clock.sleepers == 4)
    quiet.tv.faults.delay, quiet.tv.faults.drop = 0.0, 1  # the reading is on its way, the press is next
    await clock.advance(0.25, sleepers=3)
    answer = await commanding
    reported = f"{quiet.tv.url} does not answer (it closed the connection)"
    assert (answer.status, answer.json) == (400, {"error": reported, "code": "device_refused"})
    await clock.advance(0.5, sleepers=3)
    assert len(quiet.tv.keys) == 1
    assert [method for method, _ in quiet.tv.requests] == ["GET", "POST"]
    assert (await quiet.device(TV))["attributes"]["state"] == "online", "it answered the reading"


@pytest.mark.parametrize(
    ("faults", "reported"),
    [
        ({"status": 503}, "{}/query/device-info answered 503 Service Unavailable"),
        ({"body": b""}, "{} answered with something that is not XML"),
        ({"body": b"<device-info><power-mode>PowerOn"}, "{} answered with something that is not XML"),
        ({"body": b"<apps/>"}, "{} answered with XML that is not a device-info"),
        (
            {"body": b'<!DOCTYPE d [<!ENTITY a "b">]><device-info/>'},
            "{} answered with XML that declares a document type, which is refused",
        ),
        ({"body": b"x" * 300_000}, "{} answered with more than 256 KiB"),
    ],
)
async def test_a_tv_that_answers_wrongly_is_a_400_with_a_sentence_and_not_pressed(
    quiet: House, faults: dict[str, Any], reported: str
) -> None:
    for name, value in faults.items():
        setattr(quiet.tv.faults, name, value)
    async with quiet.stream() as frames:
        answer = await power(quiet, "off")
        assert (answer.status, answer.json) == (
            400,
            {"error": reported.format(quiet.tv.url), "code": "device_refused"},
        )
        assert await quiet.heard(frames) == []
    assert (quiet.tv.keys, (await quiet.device(TV))["attributes"]["state"]) == ([], "online")


async def test_the_name_is_the_owners_else_the_tvs_own(quiet: House, clock: VirtualClock) -> None:
    for given, name in [("Den & Söhne", "Den & Söhne"), ("", "Lounge"), (None, "Lounge")]:
        quiet.tv.user_device_name, quiet.tv.friendly_device_name = given, "Lounge"
        await clock.advance(1, sleepers=3)
        assert (await quiet.device(TV))["metadata"]["vendor_specific"]["friendly_name"] == name


async def test_info_is_what_the_tv_tells(house: House) -> None:
    fields = await house.hub.dispatcher.invoke("roku_tv:info", {})
    assert (fields["model-number"], fields["power-mode"], fields["user-device-name"]) == ("0000X", "PowerOn", "")
