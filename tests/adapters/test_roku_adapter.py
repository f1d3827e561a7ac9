"""A Roku TV as a device, against a simulated TV and in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.adapters.base import CommandResult
from appliance.adapters.device_http import DeviceSession
from appliance.adapters.roku_tv.adapter import TV_COMMANDS, RokuAdapter
from appliance.adapters.roku_tv.simulator import TvSimulator
from appliance.errors import BadAnswer, Unreachable
from appliance.home.capabilities import CAPABILITIES
from appliance.home.commands import Command
from appliance.home.model import DeviceKind, Info, Observation, Report
from tests.fakes.clock import VirtualClock
from tests.fakes.context import context_of
from tests.fakes.recording_client import RecordingClient

CAPTURES = Path(__file__).parents[1] / "fixtures" / "roku"
TV = "den:tv"
INFO = ("GET", "/query/device-info")


def power(action: str) -> Command:
    """A command to the power."""
    return Command(capability="power", action=action)


def _press(key: str) -> tuple[str, str]:
    return ("POST", f"/keypress/{key}")


@pytest.fixture
def http_client(session: DeviceSession, tv: TvSimulator, clock: VirtualClock) -> RecordingClient:
    """The way to the simulated TV."""
    return RecordingClient(session, tv.url, clock)


@pytest.fixture
def adapter(http_client: RecordingClient, tv: TvSimulator, clock: VirtualClock) -> RokuAdapter:
    """The adapter of the simulated TV, named `den`."""
    return RokuAdapter(context_of("den", http_client._session, clock), http_client, 9)


def _report(power: str, mode: str | None, name: str | None, model: str | None) -> Report:
    seen = Observation(
        device_id=TV,
        kind=DeviceKind.SWITCH,
        attributes={"power": power},
        vendor_specific={"power_mode": mode, "friendly_name": name, "model_name": model},
    )
    return Report(adapter="den", present=frozenset({TV}), observations=(seen,))


def _bare(report: Report | None) -> Report | None:
    """The report without name, info and commands, which have a test of their own."""
    assert report is not None
    bare = [replace(seen, name=None, info=Info(), commands=()) for seen in report.observations]
    return replace(report, observations=tuple(bare))


async def test_a_tv_tells_its_name_its_facts_and_what_it_takes(adapter: RokuAdapter, tv: TvSimulator) -> None:
    tv.faults.body = (CAPTURES / "device-info.xml").read_bytes()
    [seen] = (await adapter.poll()).observations
    assert seen.name == "My Roku 3" and seen.commands == TV_COMMANDS
    assert seen.info == Info(
        manufacturer="Roku",
        model="Roku 3",
        firmware="7.5.0",
        serial="1GU48T017973",
        device_class="media_player",
    )


def _simulated(power: str, mode: str) -> Report:
    return _report(power, mode, "Simulated TV - LARES0000002", "Simulated TV")


# --- polls ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capture", "report"),
    [
        ("device-info", _report("on", "PowerOn", "My Roku 3", "Roku 3")),
        ("device-info-standby", _report("off", "Ready", "My Roku 3", "Roku 3")),
        ("device-info-power-off", _report("off", "PowerOff", "My Roku 3", "Roku 3")),
        ("device-info-3500x", _report("on", "PowerOn", "My Roku Stick", "Roku Stick")),
    ],
)
async def test_real_devices_are_reported(adapter: RokuAdapter, tv: TvSimulator, capture: str, report: Report) -> None:
    tv.faults.body = (CAPTURES / f"{capture}.xml").read_bytes()
    assert _bare(await adapter.poll()) == report
    assert tv.requests == [INFO]
    for seen in report.observations:
        assert CAPABILITIES["power"].check(seen.attributes["power"])


async def test_a_stick_that_tells_nothing_of_power_is_on(adapter: RokuAdapter, tv: TvSimulator) -> None:
    tv.power_mode = tv.friendly_device_name = tv.user_device_name = tv.model_name = None
    assert _bare(await adapter.poll()) == _report("on", None, None, None)


async def test_what_is_bad_or_missing_comes_out_as_an_error(
    adapter: RokuAdapter, tv: TvSimulator, clock: VirtualClock
) -> None:
    tv.faults.body = b"<html/>"
    with pytest.raises(BadAnswer):
        await adapter.poll()
    tv.faults.body, tv.faults.status = None, 403
    with pytest.raises(BadAnswer, match="Control by mobile apps"):
        await adapter.poll()
    await tv.unplug()
    with pytest.raises(Unreachable, match="connection refused"):
        await clock.run(adapter.poll())


def test_it_offers_power_and_nothing_else(adapter: RokuAdapter) -> None:
    assert [(spec.capability, spec.actions) for spec in TV_COMMANDS] == [("power", ("on", "off", "toggle"))]
    assert adapter.poll_interval == 9


# --- key presses ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "key", "before", "after"),
    [
        ("on", "PowerOn", "Ready", "PowerOn"),
        ("on", "PowerOn", "PowerOff", "PowerOn"),
        ("on", "PowerOn", "PowerOn", "PowerOn"),
        ("off", "PowerOff", "PowerOn", "Ready"),
        ("off", "PowerOff", "Ready", "Ready"),
        ("toggle", "Power", "PowerOn", "Ready"),
        ("toggle", "Power", "Ready", "PowerOn"),
    ],
)
async def test_each_action_presses_its_key_and_reads_the_tv_at_once(
    adapter: RokuAdapter, tv: TvSimulator, clock: VirtualClock, action: str, key: str, before: str, after: str
) -> None:
    tv.power_mode = before
    answer = await clock.run(adapter.command(TV, power(action)))
    assert replace(answer, report=_bare(answer.report)) == CommandResult(
        report=_simulated("on" if after == "PowerOn" else "off", after)
    )
    assert tv.requests == [INFO, _press(key), INFO]
    assert (tv.power_mode, clock.monotonic()) == (after, 0.0)


@pytest.mark.parametrize(
    ("lag", "read_at", "reads_on"),
    [
        (0.0, [0.0], True),
        (0.5, [0.0, 1.0], True),
        (1.0, [0.0, 1.0], True),
        (1.5, [0.0, 1.0, 2.0], True),
        (3.0, [0.0, 1.0, 2.0, 4.0], True),
        (4.5, [0.0, 1.0, 2.0, 4.0], False),
    ],
)
@pytest.mark.parametrize("action", ["on", "toggle"])
async def test_the_tv_is_read_at_once_and_after_1_2_and_4_seconds_until_its_power_changes(
    adapter: RokuAdapter,
    tv: TvSimulator,
    clock: VirtualClock,
    http_client: RecordingClient,
    action: str,
    lag: float,
    read_at: list[float],
    reads_on: bool,
) -> None:
    tv.power_mode = "Ready"
    tv.faults.lag = lag
    answer = await clock.run(adapter.command(TV, power(action)))
    assert replace(answer, report=_bare(answer.report)) == CommandResult(
        report=_simulated("on", "PowerOn") if reads_on else _simulated("off", "Ready")
    )
    assert [at for at, method, _ in http_client.sent[2:] if method == "GET"] == read_at
    assert len(tv.keys) == 1


async def test_an_answered_press_is_a_success_though_nothing_changes(
    adapter: RokuAdapter, tv: TvSimulator, clock: VirtualClock
) -> None:
    tv.faults.stubborn = True
    answer = await clock.run(adapter.command(TV, power("off")))
    assert (_bare(answer.report), answer.error) == (_simulated("on", "PowerOn"), None)
    assert clock.monotonic() == 4.0


async def test_a_stick_without_power_modes_is_pressed_and_stays_on(
    adapter: RokuAdapter, tv: TvSimulator, clock: VirtualClock
) -> None:
    tv.power_mode = None
    answer = await clock.run(adapter.command(TV, power("on")))
    assert answer.report is not None and answer.report.observations[0].attributes == {"power": "on"}
    assert clock.monotonic() == 0.0


async def test_what_the_tv_was_is_read_and_not_remembered(
    adapter: RokuAdapter, tv: TvSimulator, clock: VirtualClock
) -> None:
    await adapter.poll()
    tv.power_mode = "Ready"
    answer = await clock.run(adapter.command(TV, power("toggle")))
    assert _bare(answer.report) == _simulated("on", "PowerOn")
    assert clock.monotonic() == 0.0


# --- requests that are not answered --------------------------------------------------------------


@pytest.mark.parametrize("action", ["on", "off", "toggle"])
async def test_a_press_that_was_not_answered_is_never_repeated(
    adapter: RokuAdapter, tv: TvSimulator, clock: VirtualClock, http_client: RecordingClient, action: str
) -> None:
    def drop(number: int, method: str) -> None:
        tv.faults.drop = 1 if method == "POST" else 0

    http_client.before = drop
    with pytest.raises(Unreachable, match="it closed the connection"):
        await clock.run(adapter.command(TV, power(action)))
    assert len(tv.keys) == 1
    assert tv.requests == [INFO, ("POST", f"/keypress/{tv.keys[0]}")]


async def test_the_reading_before_the_press_is_repeated_once_and_the_press_waits_for_it(
    adapter: RokuAdapter, tv: TvSimulator, clock: VirtualClock
) -> None:
    tv.faults.drop = 1
    await clock.run(adapter.command(TV, power("off")))
    assert tv.requests == [INFO, INFO, _press("PowerOff"), INFO]

    tv.faults.drop = 2
    with pytest.raises(Unreachable):
        await clock.run(adapter.command(TV, power("on")))
    assert tv.keys == ["PowerOff"]


@pytest.mark.parametrize(
    "fault", [{"drop": 2}, {"status": 503}, {"status": 403}, {"body": b"<device-info><power-mo"}, {"body": b""}]
)
async def test_a_reading_after_the_press_that_fails_is_left_out(
    adapter: RokuAdapter, tv: TvSimulator, clock: VirtualClock, http_client: RecordingClient, fault: dict[str, Any]
) -> None:
    def fail_once(number: int, method: str) -> None:
        for name, value in fault.items():
            setattr(tv.faults, name, value if number == 3 else 0 if name == "drop" else None)

    http_client.before = fail_once
    answer = await clock.run(adapter.command(TV, power("off")))
    assert (_bare(answer.report), answer.error) == (_simulated("off", "Ready"), None)
    assert [at for at, method, _ in http_client.sent[2:]] == [0.0, 1.0]


async def test_an_answered_press_is_a_success_though_the_tv_is_never_heard_of_again(
    adapter: RokuAdapter, tv: TvSimulator, clock: VirtualClock, http_client: RecordingClient
) -> None:
    def fall_silent(number: int, method: str) -> None:
        tv.faults.drop = 99 if number > 2 else 0

    http_client.before = fall_silent
    assert await clock.run(adapter.command(TV, power("off"))) == CommandResult(report=None)
    assert tv.keys == ["PowerOff"]


@pytest.mark.parametrize("fault", [{"status": 503}, {"body": b"<html/>"}])
async def test_a_tv_that_cannot_be_read_is_not_pressed(
    adapter: RokuAdapter, tv: TvSimulator, fault: dict[str, Any]
) -> None:
    for name, value in fault.items():
        setattr(tv.faults, name, value)
    with pytest.raises(BadAnswer):
        await adapter.command(TV, power("on"))
    assert tv.keys == []


async def test_a_tv_that_refuses_keys_says_which_setting_to_change(adapter: RokuAdapter, tv: TvSimulator) -> None:
    tv.limited = True
    with pytest.raises(BadAnswer, match=r"Settings > System > .*Control by mobile apps"):
        await adapter.command(TV, power("off"))
    assert tv.requests == [INFO, _press("PowerOff")]


# --- operations ----------------------------------------------------------------------------------


async def test_info_returns_every_field_that_the_tv_tells(adapter: RokuAdapter, tv: TvSimulator) -> None:
    tv.faults.body = (CAPTURES / "device-info-3500x.xml").read_bytes()
    fields = await adapter.operations["info"]({})
    assert (fields["model-number"], fields["user-device-location"], len(fields)) == ("3500X", "", 60)
    assert set(adapter.operations) == {"info"}
