"""WLED: a strip's state becomes devices, and the strip's pushes arrive. A third-party client accepts the simulator as
a strip."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from yarl import URL

from appliance.adapters.device_http.client import HttpClient
from appliance.adapters.device_http.errors import HttpRefused
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.wled.adapter import EFFECT, WledAdapter
from appliance.adapters.wled.kind import Wled
from appliance.errors import BadAnswer
from appliance.home.commands import Command
from appliance.home.model import DeviceKind, Info
from tests.adapters import test_contract
from tests.adapters.contract import trial
from tests.fakes.clock import VirtualClock
from tests.fakes.context import context_of
from tests.fakes.patience import until
from tests.fakes.wled import WledSimulator

CAPTURES = Path(__file__).parents[1] / "fixtures" / "wled"
CAPTURED: dict[str, Any] = {file.stem: json.loads(file.read_text()) for file in sorted(CAPTURES.glob("*.json"))}


def _adapter(session: DeviceSession, url: str, clock: VirtualClock) -> WledAdapter:
    return WledAdapter(context_of("strip", session, clock), HttpClient(session, url, clock), 5)


@pytest.mark.parametrize("raw", CAPTURED.values(), ids=CAPTURED)
async def test_recorded_strips_become_a_device_and_one_for_each_segment(
    session: DeviceSession, clock: VirtualClock, raw: dict[str, Any]
) -> None:
    async with WledSimulator() as strip:
        strip.faults.body = json.dumps(raw).encode()
        report = await _adapter(session, strip.url, clock).poll()
    whole, *segments = report.observations
    assert whole.device_id == "strip:light" and whole.name == raw["info"]["name"]
    assert whole.info.firmware == raw["info"]["ver"] and whole.info.serial == raw["info"]["mac"]
    assert [each.device_id for each in segments] == [f"strip:segment:{each['id']}" for each in raw["state"]["seg"]]
    for each, reported in zip(segments, raw["state"]["seg"], strict=True):
        assert each.kind is DeviceKind.LIGHT and each.info == Info(manufacturer="WLED", parent_id="strip:light")
        assert each.attributes[EFFECT] == raw["effects"][reported["fx"]]
        assert each.attributes["color_rgb"] == dict(zip("rgb", reported["col"][0][:3], strict=True))
        [effects] = [spec for spec in each.commands if spec.capability == EFFECT]
        assert "RSVD" not in effects.values and set(effects.values) <= set(raw["effects"])


async def test_commands_are_written_to_their_segment(session: DeviceSession, clock: VirtualClock) -> None:
    async with WledSimulator() as strip:
        adapter = _adapter(session, strip.url, clock)
        for command in (
            Command(capability="color_rgb", action="set", value={"r": 1, "g": 2, "b": 3}),
            Command(capability=EFFECT, action="set", value="Rainbow"),
            Command(capability="brightness", action="set", value=1, transition_secs=2.5),
        ):
            result = await adapter.command("strip:segment:1", command)
            assert result.error is None and result.report is not None
        first, second = strip.state["seg"]
        assert (second["col"][0], second["fx"], second["bri"]) == ([1, 2, 3], 4, 3)
        assert (first["col"][0], first["fx"], first["bri"]) == ([255, 255, 255], 0, 255)
        assert strip.writes[-1] == {"seg": [{"id": 1, "bri": 3}], "tt": 25, "v": True}, "the first one switched it on"
        endless = Command(capability="power", action="on", transition_secs=1e308)
        assert (await adapter.command("strip:light", endless)).error is None
        assert strip.writes[-1] == {"on": True, "tt": 655, "v": True}
        whole = await adapter.command("strip:light", Command(capability="brightness", action="set", value=100))
        assert whole.error is None and (strip.state["bri"], strip.state["on"]) == (255, True)
        with pytest.raises(BadAnswer, match=r"strip:segment:9 no longer exists, or cannot be read"):
            await adapter.command("strip:segment:9", Command(capability="power", action="on"))


ON, OFF, TOGGLE = (Command(capability="power", action=each) for each in ("on", "off", "toggle"))
RED = Command(capability="color_rgb", action="set", value={"r": 255, "g": 0, "b": 0})
HALF = Command(capability="brightness", action="set", value=50)


@pytest.mark.parametrize(
    ("command", "is_on", "writes"),
    [
        (ON, True, {"on": True, "seg": [{"id": 1, "on": True}], "v": True}),
        (TOGGLE, True, {"on": True, "seg": [{"id": 1, "on": True}], "v": True}),
        (HALF, True, {"on": True, "seg": [{"id": 1, "bri": 128, "on": True}], "v": True}),
        (RED, True, {"on": True, "seg": [{"id": 1, "col": [[255, 0, 0]], "on": True}], "v": True}),
        (OFF, False, {"seg": [{"id": 1, "on": False}], "v": True}),
    ],
)
async def test_a_segment_shines_only_with_its_strip_which_it_switches_on(
    session: DeviceSession, clock: VirtualClock, command: Command, is_on: bool, writes: dict[str, Any]
) -> None:
    async with WledSimulator() as strip:
        adapter = _adapter(session, strip.url, clock)
        whole, *segments = (await adapter.poll()).observations
        assert [each.attributes["power"] for each in (whole, *segments)] == ["off"] * 3, "the segments are on inside"
        result = await adapter.command("strip:segment:1", command)
        assert result.error is None and result.report is not None
        shown = {each.device_id: each.attributes["power"] for each in result.report.observations}
        assert strip.writes == [writes]
        assert shown["strip:light"] == shown["strip:segment:1"] == ("on" if is_on else "off")


CUT = b'{"on":true,"bri":128,"seg":[{"id":0,"start":0'


@pytest.mark.parametrize("device", ["strip:light", "strip:segment:0"])
@pytest.mark.parametrize("command", [ON, TOGGLE, HALF])
@pytest.mark.parametrize("answer", [CUT, b"", b'{"success":true}', b'{"error":9}'], ids=repr)
async def test_an_applied_command_with_an_unreadable_answer_succeeds(
    session: DeviceSession, clock: VirtualClock, device: str, command: Command, answer: bytes
) -> None:
    async with WledSimulator() as strip:
        strip.answer = answer
        adapter = _adapter(session, strip.url, clock)
        await adapter.poll()
        assert (await clock.run(adapter.command(device, command))).error is None
        assert len(strip.writes) == 1
        strip.faults.stubborn = True
        failed = await clock.run(adapter.command(device, OFF))
        assert str(failed.error) == f"{device} was sent power off but shows 'on'"


async def test_after_an_incomplete_answer_the_state_is_read(session: DeviceSession, clock: VirtualClock) -> None:
    async with WledSimulator() as strip:
        adapter = _adapter(session, strip.url, clock)
        await adapter.poll()
        strip.torn_writes = 1
        assert (await clock.run(adapter.command("strip:light", TOGGLE))).error is None
        assert strip.state["on"] is True


@pytest.mark.parametrize(
    ("listed", "present"),
    [
        ([{"id": 1, "stop": 9}, {"stop": 0}], {"strip:light", "strip:segment:1"}),
        ([{"id": 1, "stop": 9}, None], None),
        ([{"id": 1, "stop": 9}, {"stop": 9}], None),
        ({"id": 1, "stop": 9}, None),
    ],
)
async def test_an_unreadable_segment_removes_no_segment(
    session: DeviceSession, clock: VirtualClock, listed: Any, present: set[str] | None
) -> None:
    async with WledSimulator() as strip:
        strip.faults.body = json.dumps({"state": {"on": True, "seg": listed}, "info": {}, "effects": []}).encode()
        assert (await _adapter(session, strip.url, clock).poll()).present == present


async def test_the_power_of_a_strip_that_does_not_report_it_is_unknown(
    session: DeviceSession, clock: VirtualClock
) -> None:
    async with WledSimulator() as strip:
        listed = [{"id": 0, "start": 0, "stop": 30, "on": True, "col": [[1, 2, 3]]}]
        strip.faults.body = json.dumps({"state": {"bri": 128, "seg": listed}, "info": {}, "effects": []}).encode()
        whole, inside = (await _adapter(session, strip.url, clock).poll()).observations
        assert (whole.attributes, inside.attributes["power"]) == ({"brightness": 50}, "on")


@pytest.mark.parametrize(
    ("effects", "count"), [(["a", "b"] * 500, 256), (["x" * 100] * 100, 81), (["x" * 10_000, "b"], 0)]
)
async def test_the_effects_of_a_strip_are_limited(
    session: DeviceSession, clock: VirtualClock, effects: list[str], count: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with WledSimulator() as strip:
        strip.overrides["effects"] = effects
        adapter = _adapter(session, strip.url, clock)
        for _ in range(2):
            report = await adapter.poll()
        offered = [spec.values for spec in report.observations[1].commands if spec.capability == EFFECT]
        assert offered == ([tuple(dict.fromkeys(effects[:count]))] if count else [])
    assert [each.message for each in caplog.records] == [
        f"strip: the strip reports {len(effects)} effects; only the first {count} are used"
    ]


async def test_a_busy_strip_is_written_once_more(session: DeviceSession, clock: VirtualClock) -> None:
    async with WledSimulator() as strip:
        adapter = _adapter(session, strip.url, clock)
        await adapter.poll()
        strip.busy_writes = 1
        assert (await clock.run(adapter.command("strip:light", ON))).error is None
        strip.busy_writes = 1
        with pytest.raises(HttpRefused, match="503"):
            await clock.run(adapter.command("strip:light", TOGGLE))


@pytest.mark.parametrize(
    ("part", "value"),
    [("info", None), ("info", "x"), ("effects", None), ("effects", 7), ("palettes", "\ud800")],
)
async def test_optional_parts_can_be_missing(
    session: DeviceSession, clock: VirtualClock, part: str, value: Any
) -> None:
    async with WledSimulator() as strip:
        strip.overrides[part] = value
        adapter = _adapter(session, strip.url, clock)
        report = await adapter.poll()
        assert report.observations[0].attributes == {"power": "off", "brightness": 50}
        assert (await clock.run(adapter.command("strip:segment:0", ON))).error is None


@pytest.mark.parametrize(
    ("wrong", "attribute", "sentence"),
    [
        ({"col": None}, "color_rgb", "the field col must be a list of colours, not null"),
        ({"col": [7]}, "color_rgb", "the field col must be a list of colours, not an array"),
        ({"bri": "x"}, "brightness", "bri must be an integer from 0 to 255, not 'x'"),
        ({"bri": 256}, "brightness", "bri must be an integer from 0 to 255, not 256"),
        ({"on": 1}, "power", "the field on must be true or false, not 1"),
        ({"on": None}, "power", "the field on must be true or false, not null"),
        ({"fx": -1}, EFFECT, None),
        ({"fx": "x"}, EFFECT, None),
        ({"fx": True}, EFFECT, None),
    ],
)
async def test_a_wrong_attribute_affects_no_other_of_its_segment(
    session: DeviceSession, clock: VirtualClock, wrong: dict[str, Any], attribute: str, sentence: str | None
) -> None:
    async with WledSimulator(segments=2) as strip:
        adapter = _adapter(session, strip.url, clock)
        whole = (await adapter.poll()).observations
        strip.state["seg"][0].update(wrong)
        _, first, second = (await adapter.poll()).observations
        assert first.attributes == {key: value for key, value in whole[1].attributes.items() if key != attribute}
        assert first.wrong == ({} if sentence is None else {attribute: sentence}) and second == whole[2]


async def test_an_invalid_segment_does_not_affect_others_and_is_reported_once(
    session: DeviceSession, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with WledSimulator(segments=3) as strip:
        adapter = _adapter(session, strip.url, clock)
        strip.state["seg"][1] = "x"
        strip.state["seg"][2]["id"] = None
        for _ in range(2):
            report = await adapter.poll()
        assert [each.device_id for each in report.observations] == ["strip:light", "strip:segment:0"]
        assert [record.message.partition(":")[0] for record in caplog.records] == ["strip"]
        strip.state["seg"] = None
        assert (await adapter.poll()).observations[0].wrong == {"seg": "the field seg must be a list"}
        strip.faults.body = b'{"state": {"on": true, "seg": %b}, "info": {}}' % (b"[" * 300 + b"]" * 300)
        assert [each.device_id for each in (await adapter.poll()).observations] == ["strip:light"]


@pytest.mark.parametrize(
    "override", [{"info": "x"}, {"info": {"name": "\ud800"}}, {"info": {"name": 10**400}}, {"extra": [{}]}, {}]
)
@pytest.mark.parametrize("other", [{"bri": "x"}, "x", None])
async def test_a_push_is_read_even_if_other_parts_are_wrong(override: dict[str, Any], other: Any) -> None:
    async with trial(test_contract.TestWled.subject) as it:
        strip = cast("WledSimulator", it.vendor)
        await until(lambda: bool(strip._sockets))
        strip.state["seg"][1]["col"][0] = [9, 8, 7]
        strip.state["seg"].append(other)
        text = json.dumps({"state": strip.state, "info": strip.info, **override})
        for socket in strip._sockets:
            await socket.send_str(text)
        await until(lambda: it.device.attributes["color_rgb"] == {"r": 9, "g": 8, "b": 7})


async def test_a_push_with_deep_nesting_only_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async with trial(test_contract.TestWled.subject) as it:
        strip = cast("WledSimulator", it.vendor)
        for red in (7, 8):
            await until(lambda: bool(strip._sockets))
            for socket in tuple(strip._sockets):
                await socket.send_str('{"state": {"on": %s}}' % ("[" * 2000 + "]" * 2000))
            await until(lambda: not strip._sockets)
            await until(lambda: bool(strip._sockets))
            strip.state["seg"][1]["col"][0] = [red, 0, 0]
            await strip.push()
            await until(lambda: it.device.attributes["color_rgb"] == {"r": red, "g": 0, "b": 0})  # noqa: B023
    assert "the adapter failed" not in caplog.text


async def test_a_broken_connection_of_pushes_is_a_reason_to_poll_at_once() -> None:
    subject = replace(
        test_contract.TestWled.subject, settings=lambda vendor: Wled(base_url=vendor.url, poll_interval_secs=3600)
    )
    async with trial(subject) as it:
        strip = cast("WledSimulator", it.vendor)
        await until(lambda: bool(strip._sockets))
        strip.state["seg"][1]["col"][0] = [9, 8, 7]
        for _ in range(2):
            await until(lambda: bool(strip._sockets))
            strip.state["seg"][1]["bri"] -= 51
            shown = round(strip.state["seg"][1]["bri"] * 100 / 255)
            for socket in tuple(strip._sockets):
                await socket.close()
            await until(lambda: it.device.attributes["brightness"] == shown)  # noqa: B023 - awaited in the loop


class Redirected:
    """A session that redirects all requests to the simulator."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session = session
        self._port = port

    def request(self, method: str, url: URL, **more: Any) -> Any:
        return self._session.request(method, URL(url).with_port(self._port), **more)

    def ws_connect(self, url: URL, **more: Any) -> Any:
        return self._session.ws_connect(URL(url).with_port(self._port), **more)


@pytest.mark.slow
async def test_a_third_party_client_accepts_the_simulator() -> None:
    async with WledSimulator() as strip, aiohttp.ClientSession() as session:
        from wled import WLED

        client = WLED(strip.host, session=cast("aiohttp.ClientSession", Redirected(session, strip.port)))
        device = await client.update()
        assert (device.info.name, str(device.info.version), len(device.state.segments)) == (
            "Simulated strip",
            "0.15.0",
            2,
        )
        await client.master(on=True, brightness=200)
        await client.segment(1, color_primary=(1, 2, 3), effect=4, brightness=7)
        device = await client.update()
        assert (device.state.on, device.state.brightness) == (True, 200)
        assert strip.state["seg"][1]["col"][0] == [1, 2, 3] and strip.state["seg"][1]["fx"] == 4
        await client.connect()
        assert client.connected
        await client.disconnect()
