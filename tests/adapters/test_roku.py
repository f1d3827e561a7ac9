"""A Roku TV, with a simulated TV in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance.adapters.base import CommandResult
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.roku_tv.adapter import TV_COMMANDS, DeviceInfo, RokuAdapter, build
from appliance.adapters.roku_tv.kind import RokuTv
from appliance.adapters.roku_tv.simulator import TvSimulator
from appliance.errors import BadAnswer, Unreachable
from appliance.home.commands import Command
from appliance.home.model import DeviceKind, Info, Observation, Report
from tests.fakes.clock import VirtualClock
from tests.fakes.context import context_of
from tests.fakes.patience import until
from tests.fakes.recording_client import RecordingClient
from tests.fakes.rows import each_row

CAPTURES = Path(__file__).parents[1] / "fixtures" / "roku"
TV = "den:tv"
INFO = ("GET", "/query/device-info")


def power(action: str) -> Command:
    return Command(capability="power", action=action)


def _press(key: str) -> tuple[str, str]:
    return ("POST", f"/keypress/{key}")


@pytest.fixture
def http_client(session: DeviceSession, tv: TvSimulator, clock: VirtualClock) -> RecordingClient:
    return RecordingClient(session, tv.url, clock)


@pytest.fixture
def adapter(http_client: RecordingClient, tv: TvSimulator, clock: VirtualClock) -> RokuAdapter:
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
    """Remove name, info, and commands from the report, because another test checks them."""
    assert report is not None
    bare = [replace(seen, name=None, info=Info(), commands=()) for seen in report.observations]
    return replace(report, observations=tuple(bare))


async def test_the_name_details_and_commands_of_a_tv(adapter: RokuAdapter, tv: TvSimulator) -> None:
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
    tv.faults.body = body = (CAPTURES / f"{capture}.xml").read_bytes()
    assert _bare(await adapter.poll()) == report
    elements = {element.tag: element.text or "" for element in ElementTree.fromstring(body)}
    assert await adapter.operations["info"]({}) == elements and set(adapter.operations) == {"info"}


async def test_a_stick_without_a_power_state_is_shown_as_on(adapter: RokuAdapter, tv: TvSimulator) -> None:
    tv.info = {"is-stick": "true"}
    assert _bare(await adapter.poll()) == _report("on", None, None, None)


async def test_refusing_and_missing_tvs_are_distinguished(
    adapter: RokuAdapter, tv: TvSimulator, clock: VirtualClock
) -> None:
    tv.faults.status = 403
    with pytest.raises(
        BadAnswer, match=r"refuses to be controlled; on the TV, open Settings > System > .*mobile apps"
    ):
        await adapter.poll()
    await tv.unplug()
    with pytest.raises(Unreachable, match="connection refused"):
        await clock.run(adapter.poll())


NOT_XML: Sequence[bytes] = (
    b"",
    b" \n ",
    b"PowerOn",
    b'{"power-mode": "PowerOn"}',
    b"\x00" * 64,
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
    (CAPTURES / "device-info.xml").read_bytes()[:700],
    b"<device-info><power-mode>PowerOn</power-mode>",
    b"<device-info><a><b></a></b></device-info>",
    b"<device-info/><device-info/>",
    b'<?xml version="1.0" encoding="klingon"?><device-info/>',
    b'<?xml version="1.0" encoding="shift_jis"?><device-info/>',
    b'<?xml version="1.0" encoding="base64"?><device-info/>',
    b'<?xml version="1.0" encoding="idna"?><device-info/>',
    '<?xml version="1.0" encoding="utf-32"?><device-info/>'.encode("utf-32"),
    b"<a>" * 20_000,
    b"<device-info a='1' a='2'/>",
)
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 20))

TRAPS: Sequence[str] = (
    f'<!DOCTYPE d [<!ENTITY l0 "ha">{LAUGHS}]><device-info>&l19;</device-info>',
    f'<!DOCTYPE d [<!ENTITY a "{"a" * 9999}">]><device-info>{"&a;" * 9999}</device-info>',
    '<!DOCTYPE d [<!ENTITY f SYSTEM "file:///etc/passwd">]><device-info>&f;</device-info>',
    '<!DOCTYPE d [<!ENTITY f SYSTEM "http://127.0.0.1:1/">]><device-info>&f;</device-info>',
    '<!DOCTYPE d [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]><device-info/>',
    '<!DOCTYPE d SYSTEM "http://127.0.0.1:1/d.dtd"><device-info/>',
    "<!DOCTYPE device-info><device-info/>",
    '<!DOCTYPE d [<!ENTITY a "b">]><device-info/>',
    "<!DOCTYPE html><html><body>Log in to Wi-Fi</body></html>",
)
OTHER_ROOTS: Sequence[str] = (
    "<html><body>Log in</body></html>",
    "<Device-Info/>",
    '<device-info xmlns="urn:other"><power-mode>PowerOn</power-mode></device-info>',
    "<root><device-info><power-mode>PowerOn</power-mode></device-info></root>",
)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"Den\x07", "Den"),
        (b"D\x00en", "Den"),
        (b"Den&#7;", "Den"),
        (b"Den&#x1F;", "Den"),
        (b"Den&#xD800;", "Den"),
        (b"D\xffen", "D\ufffden"),
        (b"Den & Kitchen", "Den & Kitchen"),
        (b"Den &amp; Kitchen&#233;", "Den & Kitchen\xe9"),
        (b"Caf&eacute; &lt;1&gt;", "Caf&eacute; <1>"),
        (b"Den&#xZZ;&#X41;&#12345678901;&#x41;", "Den&#xZZ;&#X41;&#12345678901;A"),
    ],
)
async def test_an_invalid_name_is_repaired(adapter: RokuAdapter, tv: TvSimulator, name: bytes, shown: str) -> None:
    inside = b"<power-mode>Ready</power-mode><user-device-name>" + name + b"</user-device-name>"
    tv.faults.body = b'<?xml version="1.0" encoding="UTF-8" ?><device-info>' + inside + b"</device-info>"
    [seen] = (await adapter.poll()).observations
    assert (seen.name, seen.attributes) == (shown, {"power": "off"})


async def test_a_refusal_of_a_named_tv_has_both_remedies(
    session: DeviceSession, tv: TvSimulator, clock: VirtualClock
) -> None:
    settings = RokuTv(ip_address="localhost", port=tv.port)
    adapter = build(settings, context_of("den", session, clock))
    tv.guards_host = True
    assert (await adapter.poll()).observations[0].attributes == {"power": "on"}
    tv.limited = True
    with pytest.raises(BadAnswer, match=r"older TV, Default\)\. If one of these is already set, use the TV's IP"):
        await clock.run(adapter.command(TV, power("off")))
    by_address = build(RokuTv(ip_address=tv.host, port=tv.port), context_of("den", session, clock))
    with pytest.raises(BadAnswer, match=r"choose Enabled or Permissive \(on an older TV, Default\)$"):
        await clock.run(by_address.command(TV, power("off")))


WRONG_ANSWERS: Mapping[str, Sequence[bytes | str]] = {
    "something that is not XML": NOT_XML,
    "XML that has a document type, which is not allowed": TRAPS,
    "XML that is not a device-info document": OTHER_ROOTS,
}


async def test_without_an_answer_of_a_tv_no_key_is_pressed(adapter: RokuAdapter, tv: TvSimulator) -> None:
    for sentence, bodies in WRONG_ANSWERS.items():
        for body in bodies:
            tv.faults.body = body if isinstance(body, bytes) else body.encode()
            with pytest.raises(BadAnswer) as failed:
                await adapter.command(TV, power("on"))
            assert str(failed.value) == f"{tv.url} answered with {sentence}"
    assert tv.keys == []


@pytest.mark.parametrize(
    ("action", "key", "before", "after"),
    [
        ("on", "PowerOn", "Ready", "PowerOn"),
        ("on", "PowerOn", "PowerOn", "PowerOn"),
        ("off", "PowerOff", "PowerOn", "Ready"),
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


@pytest.mark.parametrize("action", ["on", "toggle"])
async def test_an_unanswered_press_is_never_repeated(
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


@pytest.mark.parametrize("fault", [{"drop": 2}, {"status": 403}, {"body": b"<device-info><power-mo"}])
async def test_a_failed_reading_after_the_press_is_skipped(
    adapter: RokuAdapter, tv: TvSimulator, clock: VirtualClock, http_client: RecordingClient, fault: dict[str, Any]
) -> None:
    def fail_once(number: int, method: str) -> None:
        for name, value in fault.items():
            setattr(tv.faults, name, value if number == 3 else 0 if name == "drop" else None)

    http_client.before = fail_once
    answer = await clock.run(adapter.command(TV, power("off")))
    assert (_bare(answer.report), answer.error) == (_simulated("off", "Ready"), None)
    assert [at for at, method, _ in http_client.sent[2:]] == [0.0, 1.0]


@pytest.mark.parametrize(("answered", "lag"), [(2, 0.0), (3, 9.0), (4, 9.0)])
async def test_a_tv_that_is_silent_after_an_answered_power_off_is_off(
    adapter: RokuAdapter,
    tv: TvSimulator,
    clock: VirtualClock,
    http_client: RecordingClient,
    answered: int,
    lag: float,
) -> None:
    tv.faults.lag = lag

    def fall_silent(number: int, method: str) -> None:
        tv.faults.drop = 99 if number > answered else 0

    http_client.before = fall_silent
    answer = await clock.run(adapter.command(TV, power("off")))
    assert _bare(answer.report) == _report("off", "PowerOff", "Simulated TV - LARES0000002", "Simulated TV")
    assert answer.error is None and tv.keys == ["PowerOff"]


async def test_a_tv_that_is_silent_at_first_and_still_on_is_on(
    adapter: RokuAdapter, tv: TvSimulator, clock: VirtualClock, http_client: RecordingClient
) -> None:
    tv.faults.stubborn = True
    http_client.before = lambda number, _: setattr(tv.faults, "drop", 2 if number == 3 else 0)
    answer = await clock.run(adapter.command(TV, power("off")))
    assert _bare(answer.report) == _simulated("on", "PowerOn")


async def test_a_command_that_ends_between_two_readings_reports_the_last_reading(
    adapter: RokuAdapter, tv: TvSimulator, clock: VirtualClock
) -> None:
    tv.faults.stubborn = True
    work = asyncio.ensure_future(adapter.command(TV, power("off")))
    await until(lambda: clock.sleepers > 0)
    work.cancel()
    assert _bare((await work).report) == _simulated("on", "PowerOn")


async def test_after_a_slow_first_reading_the_last_reading_comes_before_the_command_ends(
    adapter: RokuAdapter, tv: TvSimulator, clock: VirtualClock, http_client: RecordingClient
) -> None:
    tv.faults.stubborn = True
    http_client.before = lambda number, _: clock.suspend(2.0 if number == 1 else 0.0)
    answer = await clock.run(adapter.command(TV, power("off")))
    assert _bare(answer.report) == _simulated("on", "PowerOn")
    assert [at for at, method, _ in http_client.sent[2:]] == [2.0, 3.0, 4.0, 4.5]


async def test_after_an_unreadable_answer_to_a_press_the_tv_is_read(
    adapter: RokuAdapter, tv: TvSimulator, clock: VirtualClock, http_client: RecordingClient
) -> None:
    http_client.before = lambda number, _: setattr(tv.faults, "torn", number == 2)
    answer = await clock.run(adapter.command(TV, power("toggle")))
    assert (_bare(answer.report), answer.error) == (_simulated("off", "Ready"), None)
    assert len(tv.keys) == 1


async def test_a_tv_that_refuses_keys_causes_an_error_with_the_setting(adapter: RokuAdapter, tv: TvSimulator) -> None:
    tv.limited = True
    with pytest.raises(BadAnswer, match=r"Settings > System > .*Control by mobile apps"):
        await adapter.command(TV, power("off"))
    assert tv.requests == [INFO, _press("PowerOff")]


def _xml(inside: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8" ?>\n<device-info>{inside}</device-info>\n'.encode()


@each_row(
    ("inside", "mode", "is_on"),
    [
        ("<power-mode>PowerOn</power-mode>", "PowerOn", True),
        ("<power-mode> PowerOn\n</power-mode>", "PowerOn", True),
        ("<power-mode>Ready</power-mode>", "Ready", False),
        ("<power-mode>DisplayOff</power-mode>", "DisplayOff", False),
        ("<power-mode>poweron</power-mode>", "poweron", False),
        ("<power-mode></power-mode>", "", False),
        ("<power-mode>&power;</power-mode>", "&power;", False),
        ("", None, True),
        ("<is-stick><power-mode>Ready</power-mode></is-stick>", None, True),
        ("<!-- <power-mode>Ready</power-mode> --><?power-mode Ready?>", None, True),
    ],
)
def test_only_power_on_is_on_and_a_device_without_the_element_is(inside: str, mode: str | None, is_on: bool) -> None:
    info = DeviceInfo.parse(_xml(inside))
    assert (info.power_mode, info.is_on) == (mode, is_on)


@each_row(
    ("inside", "name"),
    [
        ("<user-device-name>Den</user-device-name><friendly-device-name>TV</friendly-device-name>", "Den"),
        ("<user-device-name></user-device-name><friendly-device-name>TV</friendly-device-name>", "TV"),
        ("<user-device-name/><friendly-device-name>TV</friendly-device-name>", "TV"),
        ("<user-device-name>Tom &amp; &quot;Jerry&quot; &#228;&#x1F4FA;</user-device-name>", 'Tom & "Jerry" ä📺'),
        ("<user-device-name/><friendly-device-name/>", None),
        ("", None),
    ],
)
def test_the_owners_name_takes_precedence(inside: str, name: str | None) -> None:
    assert DeviceInfo.parse(_xml(inside)).friendly_name == name


@each_row("encoding", ["utf-8", "utf-16", "iso-8859-1", "windows-1252"])
def test_the_declared_encoding_of_the_document_is_used(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><device-info><model-name>Käse</model-name></device-info>'
    assert DeviceInfo.parse(text.encode(encoding)).model_name == "Käse"


@pytest.mark.slow
def test_a_large_and_deep_document_is_read() -> None:
    assert DeviceInfo.parse(_xml("<a>" * 30_000 + "</a>" * 30_000)).is_on
    assert len(DeviceInfo.parse(_xml("".join(f"<e{n}/>" for n in range(20_000)))).fields) == 20_000


@given(st.binary(max_size=200) | st.text(max_size=80).map(_xml))
def test_any_bytes_are_a_device_or_a_bad_answer(body: bytes) -> None:
    try:
        info = DeviceInfo.parse(body)
    except BadAnswer as error:
        assert str(error).isprintable()
        return
    assert info.is_on or info.power_mode is not None
