"""Elgato lights, with a simulated light in virtual time, and the possible states of one light."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance.adapters.base import CommandResult
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.elgato_lights.adapter import (
    BATTERY_MODEL,
    INFO_INTERVAL_SECS,
    LIGHT_COMMANDS,
    ElgatoAdapter,
    LightState,
    clamped_mireds,
)
from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight
from appliance.adapters.polling import MAX_PARTS
from appliance.errors import BadAnswer, Invalid, Unreachable
from appliance.home.commands import Command
from appliance.home.model import DeviceKind, Info, Observation, Report
from appliance.home.values import kelvin_of
from tests.fakes.clock import VirtualClock
from tests.fakes.context import context_of
from tests.fakes.recording_client import RecordingClient
from tests.fakes.rows import each_row
from tests.fakes.still import StillRunner

CAPTURES = Path(__file__).parents[1] / "fixtures" / "elgato"
FIRST, SECOND = "desk:light:0", "desk:light:1"
GET, PUT = ("GET", "/elgato/lights"), ("PUT", "/elgato/lights")
INFO = ("GET", "/elgato/accessory-info")

ON = Command(capability="power", action="on")
OFF = Command(capability="power", action="off")
TOGGLE = Command(capability="power", action="toggle")


def brightness(percent: int) -> Command:
    return Command(capability="brightness", action="set", value=percent)


def temperature(value: int, unit: str = "kelvin") -> Command:
    return Command(capability="color_temperature", action="set", value={"value": value, "unit": unit})


async def send(adapter: ElgatoAdapter, device_id: str, command: Command) -> CommandResult:
    [result] = await adapter.command_many([device_id], command)
    return result


@pytest.fixture
def http_client(session: DeviceSession, light: LightSimulator, clock: VirtualClock) -> RecordingClient:
    return RecordingClient(session, light.url, clock)


@pytest.fixture
def adapter(http_client: RecordingClient, clock: VirtualClock) -> ElgatoAdapter:
    return ElgatoAdapter(context_of("desk", http_client._session, clock), http_client, 7)


def _seen(report: Report) -> dict[str, Any]:
    return {seen.device_id: dict(seen.attributes) for seen in report.observations}


def _kelvin(value: int) -> dict[str, Any]:
    return {"value": value, "unit": "kelvin"}


@pytest.mark.parametrize(
    ("model", "battery", "shown"),
    [
        ("Elgato Key Light Mini", {"powerSource": 1, "level": 78.57, "status": 2}, 79),
        ("Elgato Key Light Mini", {"level": 100.4}, 100),
        ("Elgato Key Light Mini", {"level": None}, None),
        ("Elgato Key Light Mini", {"level": -1}, None),
        ("Elgato Key Light Mini", {"level": 255}, None),
        ("Elgato Key Light Mini", None, None),
        ("Elgato Key Light", {"level": 50}, None),
    ],
)
async def test_the_battery_of_a_key_light_mini_is_shown(
    adapter: ElgatoAdapter, light: LightSimulator, model: str, battery: dict[str, Any] | None, shown: int | None
) -> None:
    light.info["productName"], light.battery = model, battery
    [seen] = (await adapter.poll()).observations
    assert seen.attributes.get("battery") == shown and seen.info is not None and seen.info.model == model


async def test_without_an_answer_the_level_of_the_battery_is_unknown(
    adapter: ElgatoAdapter, light: LightSimulator, clock: VirtualClock
) -> None:
    light.info["productName"], light.battery = BATTERY_MODEL, {"level": 80}
    [seen] = (await adapter.poll()).observations
    assert seen.attributes["battery"] == 80
    light.battery = None
    await clock.advance(INFO_INTERVAL_SECS, sleepers=0)
    [seen] = (await adapter.poll()).observations
    assert "battery" not in seen.attributes


@pytest.mark.parametrize(
    ("kelvin", "mired", "shown"),
    [
        (7000, 143, 6993),
        (6968, 144, 6944),
        (4695, 213, 4695),
        (3000, 333, 3003),
        (2900, 344, 2907),
    ],
)
async def test_kelvin_becomes_mired_within_the_range_of_lights_and_the_light_shows_the_result(
    adapter: ElgatoAdapter, light: LightSimulator, kelvin: int, mired: int, shown: int
) -> None:
    assert (clamped_mireds(kelvin), kelvin_of(mired)) == (mired, shown)
    answer = await send(adapter, FIRST, temperature(kelvin))
    assert answer.error is None and answer.report is not None
    assert light.writes[0]["lights"][0]["temperature"] == mired == light.lights[0].temperature
    assert _seen(answer.report)[FIRST]["color_temperature"] == _kelvin(shown)


@given(st.integers(143, 344))
def test_every_mired_of_a_light_survives_conversion_to_kelvin_and_back(mired: int) -> None:
    assert clamped_mireds(kelvin_of(mired)) == mired
    assert 2900 <= kelvin_of(mired) <= 7000


@given(st.integers(2900, 7000))
def test_every_kelvin_of_a_light_is_shown_within_one_mired(kelvin: int) -> None:
    assert 143 <= clamped_mireds(kelvin) <= 344
    assert abs(kelvin_of(clamped_mireds(kelvin)) - kelvin) <= kelvin**2 / 1_000_000


async def test_every_light_is_reported_by_its_index(adapter: ElgatoAdapter, light: LightSimulator) -> None:
    light.lights = [SimulatedLight(on=True, brightness=1, temperature=143), SimulatedLight(hue=358.0, saturation=6.5)]
    report = await adapter.poll()
    info = Info(manufacturer="Elgato", model="Elgato Key Light", firmware="1.0.3", serial="LARES0000001")
    assert report == Report(
        adapter="desk",
        present=frozenset({FIRST, SECOND}),
        observations=(
            Observation(
                device_id=FIRST,
                kind=DeviceKind.LIGHT,
                attributes={"power": "on", "brightness": 1, "color_temperature": _kelvin(6993)},
                vendor_specific={"light_index": 0},
                name="Simulated light 1",
                info=info,
                commands=LIGHT_COMMANDS,
            ),
            Observation(
                device_id=SECOND,
                kind=DeviceKind.LIGHT,
                attributes={"power": "off", "brightness": 50},
                vendor_specific={"light_index": 1, "hue": 358.0, "saturation": 6.5},
                name="Simulated light 2",
                info=info,
                commands=LIGHT_COMMANDS,
            ),
        ),
    )
    assert light.requests == [GET, INFO]
    await adapter.poll()
    assert light.requests == [GET, INFO, GET], "facts are read now and then only"


@pytest.mark.parametrize("fault", ["silent", "garbage"])
async def test_a_light_without_details_has_no_name(
    http_client: RecordingClient,
    light: LightSimulator,
    clock: VirtualClock,
    fault: str,
) -> None:
    adapter = ElgatoAdapter(context_of("desk", http_client._session, clock), http_client, 7)
    light.info = {"displayName": 7, "productName": ["x"], "serialNumber": None} if fault == "garbage" else light.info

    def spoil(number: int, method: str) -> None:
        light.faults.silent = fault == "silent" and number > 1

    http_client.before = spoil
    [seen] = (await adapter.poll()).observations
    assert seen.name is None and seen.attributes["power"] == "off"


@pytest.mark.parametrize(
    ("capture", "attributes"),
    [
        ("state-temperature.json", {"power": "on", "brightness": 21, "color_temperature": _kelvin(3367)}),
        ("state-color.json", {"power": "on", "brightness": 50}),
    ],
)
async def test_captured_lights(
    adapter: ElgatoAdapter, light: LightSimulator, capture: str, attributes: dict[str, Any]
) -> None:
    light.faults.body = (CAPTURES / capture).read_bytes()
    assert _seen(await adapter.poll()) == {FIRST: attributes}


WRONG_ANSWERS: Mapping[str, Sequence[bytes]] = {
    " answered with something that is not JSON": (
        b"",
        b"<!DOCTYPE html><html><body>Log in to Wi-Fi</body></html>",
        b'{"lights": []}{"lights": []}',
        b"[" * 50_000,
        b"\x00" * 64,
    ),
    " answered with JSON that is not an object": (b"null", b"7", b'"lights"', b'[{"lights": []}]'),
    "/elgato/lights answered without a list of lights": (
        b"{}",
        b'{"lights": {}}',
        b'{"lights": "on"}',
        b'{"lights": NaN}',
    ),
}


async def test_an_answer_unlike_a_light_is_not_repeated(adapter: ElgatoAdapter, light: LightSimulator) -> None:
    for sentence, bodies in WRONG_ANSWERS.items():
        for body in bodies:
            light.faults.body = body
            light.requests.clear()
            with pytest.raises(BadAnswer) as failed:
                await adapter.poll()
            assert str(failed.value) == light.url + sentence and light.requests == [GET]


async def test_no_address_has_thousands_of_lights(
    adapter: ElgatoAdapter, light: LightSimulator, caplog: pytest.LogCaptureFixture
) -> None:
    light.faults.body = json.dumps({"lights": [{"on": 1}] * 2_000}).encode()
    for _ in range(2):
        assert len((await adapter.poll()).observations) == MAX_PARTS
    assert caplog.messages == ["desk: the device reports 2000 parts; only the first 64 are used"]


async def test_an_address_without_lights_is_not_a_failure(adapter: ElgatoAdapter, light: LightSimulator) -> None:
    light.lights = []
    assert await adapter.poll() == Report(adapter="desk", present=frozenset(), observations=())


async def test_an_invalid_light_is_skipped_and_reported_once_until_it_recovers(
    adapter: ElgatoAdapter, light: LightSimulator, caplog: pytest.LogCaptureFixture
) -> None:
    lamp = SimulatedLight(temperature=213)
    bad: Any
    for bad in ("lamp", {}, lamp, None, {"on": "x", "brightness": 1000}):
        light.lights = [lamp, bad, lamp]
        report = await adapter.poll()
        assert set(report.present or ()) == {FIRST, SECOND, "desk:light:2"}
        assert (SECOND in _seen(report)) is (bad is lamp)
    assert [each.message for each in caplog.records] == [
        "desk:light:1: cannot be read: must be an object, not 'lamp'",
        "desk:light:1: cannot be read: must be an object, not null",
    ]


async def test_a_wrong_attribute_is_reported_and_the_others_are_shown(
    adapter: ElgatoAdapter, light: LightSimulator, clock: VirtualClock
) -> None:
    light.lights = [{"on": "yes", "brightness": 50, "temperature": 0}, {"on": 1}]
    report = await adapter.poll()
    assert _seen(report) == {FIRST: {"brightness": 50}, "desk:light:1": {"power": "on"}}
    assert report.observations[0].wrong == {
        "power": "on must be an integer from 0 to 1, not 'yes'",
        "color_temperature": "temperature must be an integer from 143 to 344, not 0",
    }
    result = await send(adapter, FIRST, TOGGLE)
    assert "does not report whether it is on" in str(result.error)
    await clock.run(send(adapter, FIRST, ON))
    assert light.writes[0]["lights"][0] == {"on": 1, "brightness": 50}, "what is wrong is not sent back"


@pytest.mark.parametrize(
    ("command", "before", "after", "written"),
    [
        (ON, SimulatedLight(temperature=200), SimulatedLight(on=True, temperature=200), {"on": 1}),
        (OFF, SimulatedLight(on=True, temperature=200), SimulatedLight(temperature=200), {"on": 0}),
        (TOGGLE, SimulatedLight(on=True, temperature=200), SimulatedLight(temperature=200), {"on": 0}),
        (TOGGLE, SimulatedLight(temperature=200), SimulatedLight(on=True, temperature=200), {"on": 1}),
        (
            brightness(100),
            SimulatedLight(temperature=200),
            SimulatedLight(brightness=100, temperature=200),
            {"brightness": 100},
        ),
        (
            temperature(5000),
            SimulatedLight(on=True, temperature=300),
            SimulatedLight(on=True, temperature=200),
            {"temperature": 200},
        ),
    ],
)
async def test_a_command_reads_writes_one_field_and_reads_again(
    adapter: ElgatoAdapter,
    light: LightSimulator,
    command: Command,
    before: SimulatedLight,
    after: SimulatedLight,
    written: dict[str, int],
) -> None:
    light.lights = [before]
    expected = {"on": int(before.on), "brightness": before.brightness, "temperature": before.temperature}
    await adapter.poll()
    light.requests.clear()
    answer = await send(adapter, FIRST, command)
    assert answer == CommandResult(report=await adapter.poll(), error=None)
    assert light.lights == [after]
    assert light.writes == [{"numberOfLights": 1, "lights": [{**expected, **written}]}]
    assert light.requests == [GET, PUT, GET, GET]


async def test_other_lights_are_written_with_the_values_just_read(
    adapter: ElgatoAdapter, light: LightSimulator
) -> None:
    others = [
        SimulatedLight(on=True, brightness=3, temperature=150),
        SimulatedLight(hue=120.5, saturation=99.0, brightness=9),
    ]
    light.lights = [others[0], SimulatedLight(temperature=213), others[1]]
    report = (await send(adapter, SECOND, ON)).report
    assert light.lights == [others[0], SimulatedLight(on=True, temperature=213), others[1]]
    assert light.writes == [
        {
            "numberOfLights": 3,
            "lights": [
                {"on": 1, "brightness": 3, "temperature": 150},
                {"on": 1, "brightness": 50, "temperature": 213},
                {"on": 0, "brightness": 9, "hue": 120.5, "saturation": 99.0},
            ],
        }
    ]
    assert report is not None and len(report.observations) == 3


async def test_unknown_fields_are_written_back(adapter: ElgatoAdapter, light: LightSimulator) -> None:
    light.lights = [{"on": 1, "brightness": 3, "temperature": 150, "scene": "x"}, SimulatedLight(temperature=213)]
    await send(adapter, SECOND, ON)
    assert light.writes[0]["lights"][0] == {"on": 1, "brightness": 3, "temperature": 150, "scene": "x"}


@pytest.mark.parametrize("bad", [None, {}, {"on": "yes"}, {"on": 1, "brightness": 900}])
async def test_an_invalid_light_blocks_no_neighbour(adapter: ElgatoAdapter, light: LightSimulator, bad: Any) -> None:
    light.lights = [bad, SimulatedLight(temperature=213)]
    answer = await send(adapter, SECOND, ON)
    assert answer.error is None and answer.report is not None
    assert set(answer.report.present or ()) == {FIRST, SECOND}
    assert light.lights == [bad, SimulatedLight(on=True, temperature=213)]
    assert light.writes[0]["lights"][0] == ({"on": 1} if isinstance(bad, dict) and "brightness" in bad else {})


async def test_only_a_temperature_ends_a_colour(adapter: ElgatoAdapter, light: LightSimulator) -> None:
    light.lights = [SimulatedLight(hue=10.0, saturation=20.0)]
    await send(adapter, FIRST, ON)
    await send(adapter, FIRST, brightness(7))
    assert light.lights == [SimulatedLight(on=True, brightness=7, hue=10.0, saturation=20.0)]
    answer = await send(adapter, FIRST, temperature(4000))
    assert light.lights == [SimulatedLight(on=True, brightness=7, temperature=250)]
    assert answer.report is not None
    assert _seen(answer.report)[FIRST]["color_temperature"] == _kelvin(4000)


@pytest.mark.parametrize(
    ("lights", "expected"),
    [
        ([], "light 0 no longer exists"),
        ([None], "light 0 must be an object, not null"),
    ],
)
async def test_a_missing_or_unreadable_light_is_not_written(
    adapter: ElgatoAdapter, light: LightSimulator, lights: list[Any], expected: str
) -> None:
    light.lights = lights
    result = await send(adapter, FIRST, ON)
    assert (result.report, str(result.error)) == (None, f"{light.url}: {expected}")
    assert light.requests == [GET]


@pytest.mark.parametrize("lag", [0.05, 1.0])
async def test_a_light_that_is_up_to_a_second_late_is_awaited(
    adapter: ElgatoAdapter, light: LightSimulator, clock: VirtualClock, lag: float
) -> None:
    light.faults.lag = lag
    answer = await clock.run(send(adapter, FIRST, ON))
    assert answer.error is None and answer.report is not None
    assert _seen(answer.report)[FIRST]["power"] == "on"
    assert lag <= clock.monotonic() < lag + 0.11


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (ON, "power on but shows 'off'"),
        (TOGGLE, "power toggle but shows 'off'"),
        (brightness(80), "brightness 80 but shows 50"),
        (temperature(5000), "color_temperature 5000 kelvin but shows 4695 kelvin"),
    ],
)
async def test_a_light_that_does_not_change_within_a_second_fails_with_its_present_values(
    adapter: ElgatoAdapter, light: LightSimulator, clock: VirtualClock, command: Command, expected: str
) -> None:
    light.faults.stubborn = True
    answer = await clock.run(send(adapter, FIRST, command))
    assert str(answer.error) == f"{FIRST} was sent {expected}"
    assert answer.report is not None
    assert _seen(answer.report)[FIRST] == {"power": "off", "brightness": 50, "color_temperature": _kelvin(4695)}
    assert 1.0 <= clock.monotonic() < 1.11
    assert light.requests.count(PUT) == 1
    assert light.requests.count(GET) <= 13


@pytest.mark.parametrize("lights", [[], [None], [{}]])
async def test_the_present_state_of_the_light_is_reported(
    adapter: ElgatoAdapter,
    light: LightSimulator,
    clock: VirtualClock,
    http_client: RecordingClient,
    lights: list[Any],
) -> None:
    def spoil(number: int, method: str) -> None:
        if method == "PUT":
            light.lights = lights

    http_client.before = spoil
    answer = await clock.run(send(adapter, FIRST, ON))
    assert str(answer.error) == f"{FIRST} was sent power on but shows nothing"
    assert answer.report is not None and answer.report.observations == ()


@pytest.mark.parametrize("command", [ON, TOGGLE])
async def test_after_an_unreadable_answer_to_a_write_the_light_is_read(
    adapter: ElgatoAdapter, light: LightSimulator, clock: VirtualClock, http_client: RecordingClient, command: Command
) -> None:
    http_client.before = lambda number, method: setattr(light.faults, "torn", method == "PUT")
    assert (await clock.run(send(adapter, FIRST, command))).error is None
    assert light.requests == [GET, PUT, GET]
    light.faults.stubborn = True
    result = await clock.run(send(adapter, FIRST, TOGGLE))
    assert str(result.error) == f"{FIRST} was sent power toggle but shows 'on'"


async def test_an_unreadable_field_keeps_its_value_but_confirms_no_command(
    http_client: RecordingClient, light: LightSimulator, clock: VirtualClock
) -> None:
    context = context_of("desk", http_client._session, clock)
    adapter = ElgatoAdapter(context, http_client, 5)
    runner = StillRunner(adapter, context)
    lamp = {"on": 1, "brightness": 50, "temperature": 200}
    light.lights = [lamp]
    await runner.poll()
    [before] = context.publish.list_devices().values()
    for wrong in ({"on": "yes"}, {"brightness": 900}, {"temperature": 0}, {"on": None, "brightness": "x"}):
        light.lights = [{**lamp, **wrong}]
        await runner.poll()
        [device] = context.publish.list_devices().values()
        assert device.attributes == before.attributes
    light.faults.body = json.dumps({"lights": [{**lamp, "on": "yes"}]}).encode()
    assert (await clock.run(send(adapter, FIRST, ON))).error is not None


@pytest.mark.parametrize("count", [1, 2, 5, None, "2"])
async def test_a_light_that_an_answer_does_not_list_is_removed(
    http_client: RecordingClient, light: LightSimulator, clock: VirtualClock, count: Any
) -> None:
    context = context_of("desk", http_client._session, clock)
    runner = StillRunner(ElgatoAdapter(context, http_client, 5), context)
    lamp = {"on": 1, "brightness": 50, "temperature": 200}
    light.lights = [lamp, lamp]
    await runner.poll()
    assert context.publish.list_devices().keys() == {FIRST, SECOND}
    light.faults.body = json.dumps({"numberOfLights": count, "lights": [lamp]}).encode()
    await runner.poll()
    assert context.publish.list_devices().keys() == {FIRST}


async def test_an_address_without_a_light_is_reported_once_with_its_answer(
    http_client: RecordingClient, light: LightSimulator, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    context = context_of("desk", http_client._session, clock)
    runner = StillRunner(ElgatoAdapter(context, http_client, 5), context)
    lamps, light.lights = light.lights, []
    for _ in range(2):
        await runner.poll()
    assert [each.getMessage() for each in caplog.records] == [
        "desk: the answer contains no device; it contains numberOfLights: 0, lights: an array"
    ]
    light.lights = lamps
    await runner.poll()
    light.lights = []
    await runner.poll()
    assert len(caplog.records) == 2


def _drop_at(http_client: RecordingClient, light: LightSimulator, method: str) -> None:
    """Make the light cut off the next request of this method, once."""

    def drop(number: int, sent: str) -> None:
        if sent == method:
            light.faults.drop = 1
            http_client.before = lambda number, method: None

    http_client.before = drop


@pytest.mark.parametrize("command", [ON, temperature(4000)])
async def test_an_unanswered_read_or_write_is_repeated_once(
    adapter: ElgatoAdapter, light: LightSimulator, clock: VirtualClock, http_client: RecordingClient, command: Command
) -> None:
    _drop_at(http_client, light, "GET")
    assert (await clock.run(send(adapter, FIRST, command))).error is None
    assert light.requests == [GET, GET, PUT, GET]
    assert clock.monotonic() == 0.25

    light.requests.clear()
    _drop_at(http_client, light, "PUT")
    assert (await clock.run(send(adapter, FIRST, command))).error is None
    assert light.requests == [GET, PUT, PUT, GET]
    assert clock.monotonic() == 0.5


async def test_the_read_of_a_toggle_is_repeated_and_its_write_never(
    adapter: ElgatoAdapter, light: LightSimulator, clock: VirtualClock, http_client: RecordingClient
) -> None:
    _drop_at(http_client, light, "GET")
    assert (await clock.run(send(adapter, FIRST, TOGGLE))).error is None
    assert light.requests == [GET, GET, PUT, GET]

    light.requests.clear()
    _drop_at(http_client, light, "PUT")
    with pytest.raises(Unreachable, match="it closed the connection"):
        await clock.run(send(adapter, FIRST, TOGGLE))
    assert light.requests == [GET, PUT]


async def test_identify_makes_a_light_of_this_adapter_blink(adapter: ElgatoAdapter, light: LightSimulator) -> None:
    for wrong in ({}, {"device_id": 0}, {"device_id": "desk:light:x"}, {"device_id": "shelf:light:0"}, {"id": FIRST}):
        with pytest.raises(Invalid) as failed:
            await adapter.operations["identify"](wrong)
        assert str(failed.value) == "the operation identify needs the device_id of a light of desk"
    assert light.requests == []
    assert await adapter.operations["identify"]({"device_id": FIRST}) is None
    assert light.requests == [("POST", "/elgato/identify")] and light.identified == 1


async def test_info_returns_the_details_of_the_vendor(adapter: ElgatoAdapter, light: LightSimulator) -> None:
    for capture in CAPTURES.glob("info-*.json"):
        light.info = json.loads(capture.read_bytes())
        assert await adapter.operations["info"]({}) == light.info
    assert set(adapter.operations) == {"identify", "info"}


async def test_several_lights_are_commanded_in_one_write_and_each_has_its_result(
    adapter: ElgatoAdapter, light: LightSimulator, clock: VirtualClock
) -> None:
    light.lights = [SimulatedLight(temperature=200), None, SimulatedLight(on=True, temperature=300)]
    ids = ["desk:light:2", "desk:light:1", "desk:light:0", "desk:light:7"]
    last, bad, first, gone = await clock.run(adapter.command_many(ids, TOGGLE))
    assert [method for method, _ in light.requests] == ["GET", "PUT", "GET"]
    assert light.lights == [SimulatedLight(on=True, temperature=200), None, SimulatedLight(temperature=300)]
    assert (first.error, last.error) == (None, None)
    assert str(bad.error) == f"{light.url}: light 1 must be an object, not null"
    assert str(gone.error) == f"{light.url}: light 7 no longer exists"


LAMP: dict[str, Any] = {"on": 1, "brightness": 50, "temperature": 200}
COLOUR: dict[str, Any] = {"on": 0, "brightness": 50, "hue": 10, "saturation": 20.5}


@each_row(
    ("raw", "light"),
    [
        (LAMP, LightState(on=True, brightness=50, mired=200)),
        ({**LAMP, "on": 1.0, "brightness": 7.0, "temperature": 143.0}, LightState(on=True, brightness=7, mired=143)),
        ({**LAMP, "flavour": {"of": ["vanilla"]}}, LightState(on=True, brightness=50, mired=200)),
        ({**LAMP, "hue": 1, "saturation": 2}, LightState(on=True, brightness=50, mired=200)),
        (COLOUR, LightState(on=False, brightness=50, hue=10, saturation=20.5)),
        (
            {"on": 1, "hue": 200.0, "saturation": 100.0, "brightness": 82.0, "temperature": 0},
            LightState(on=True, brightness=82, hue=200.0, saturation=100.0),
        ),
    ],
)
def test_a_light_is_read(raw: Any, light: LightState) -> None:
    assert LightState.parse(raw) == light


@each_row(
    ("raw", "fault"),
    [
        (None, "must be an object, not null"),
        ({"on": "x", "brightness": 1000}, "on must be an integer from 0 to 1, not 'x'"),
        ({"temperature": 0, "hue": "red"}, "hue must be a number, not 'red'"),
        ({"flavour": 1}, "must have at least one of the fields on, brightness, temperature, hue, saturation"),
    ],
)
def test_an_error_names_the_device_that_is_not_a_light(raw: Any, fault: str) -> None:
    with pytest.raises(Invalid) as failed:
        LightState.parse(raw)
    assert str(failed.value) == fault


@each_row(
    ("lamp", "name", "value", "fault"),
    [
        (LAMP, "on", True, "on must be an integer from 0 to 1, not true"),
        (LAMP, "on", 0.5, "on must be an integer from 0 to 1, not 0.5"),
        (LAMP, "brightness", 101, "brightness must be an integer from 0 to 100, not 101"),
        (LAMP, "brightness", None, "brightness must be an integer from 0 to 100, not null"),
        (LAMP, "temperature", 142, "temperature must be an integer from 143 to 344, not 142"),
        (LAMP, "temperature", {}, "temperature must be an integer from 143 to 344, not an object"),
        (COLOUR, "hue", "red", "hue must be a number, not 'red'"),
        (COLOUR, "saturation", True, "saturation must be a number, not true"),
    ],
)
def test_a_wrong_field_does_not_hide_the_light(lamp: dict[str, Any], name: str, value: Any, fault: str) -> None:
    light, whole = LightState.parse({**lamp, name: value}), LightState.parse(lamp)
    assert light.wrong == {name: fault}
    assert light == replace(whole, wrong=light.wrong, **{{"temperature": "mired"}.get(name, name): None})
    assert LightState.parse({key: each for key, each in lamp.items() if key != name}) == replace(light, wrong={})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats(allow_nan=False) | st.text(max_size=70),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = st.sampled_from(["on", "brightness", "temperature", "hue", "saturation"])
NUMBERS = st.integers(-1, 400) | st.floats(-1, 400)


@given(JSON | st.dictionaries(FIELDS, NUMBERS | JSON))
def test_any_json_is_a_valid_light_or_an_error_in_one_line(raw: Any) -> None:
    try:
        light = LightState.parse(raw)
    except Invalid as fault:
        assert "\n" not in str(fault) and len(str(fault)) < 160
        return
    assert all("\n" not in each and len(each) < 160 for each in light.wrong.values())
    assert light.brightness is None or 0 <= light.brightness <= 100
    assert light.mired is None or light.hue is light.saturation is None
    assert light.mired is None or 143 <= light.mired <= 344
