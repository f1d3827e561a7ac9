"""Odd answers of devices from public bug reports. Each rule of the checklist in `docs/lua-adapters.md` has one
table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.device_http.client import HttpResponse
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.lua_kinds.json_and_xml import decode_xml
from appliance.adapters.lua_kinds.web_request import WebRequest
from appliance.errors import AdapterFailed
from appliance.lua.running.worker_pool import WorkerPool
from tests.adapters.contract import trial
from tests.adapters.lua_kinds.bench import KindAtWork, start
from tests.adapters.lua_kinds.bundled import BUNDLED
from tests.adapters.lua_kinds.simulators import SOAP, HueBridge, Tasmota
from tests.adapters.lua_kinds.sources import BEN, Tibber, upnp_error
from tests.adapters.lua_kinds.test_own_origins import origins_of
from tests.adapters.lua_kinds.vendor import Answer, Vendor
from tests.fakes.vendor import RawVendor

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

HOSTS = "/upnp/control/hosts"
TRANSPORT, RENDERING = "/MediaRenderer/AVTransport/Control", "/MediaRenderer/RenderingControl/Control"
SOLAR = "/solar_api/v1/GetPowerFlowRealtimeData.fcgi"


async def begin(pool: WorkerPool, tmp_path: Path, name: str) -> KindAtWork:
    """Return a bundled kind after a good poll. The simulator is `vendor`."""
    row = BUNDLED[name]
    it = await start(pool, tmp_path, None, row.vendor(), row.kind, **row.stated)
    await it.poll()
    return it


def solar(code: Any, **status: Any) -> dict[str, Any]:
    """Return an inverter's answer with an error."""
    return {"Head": {"Status": {"Code": code, **status}}, "Body": {"Data": {}}}


UNKNOWN_CODES: tuple[tuple[str, str, Answer, str], ...] = (
    ("fritzbox", HOSTS, (500, upnp_error(606, "Action Not Authorized")), "error 606: give the user the right to see"),
    ("fritzbox", HOSTS, (500, upnp_error(820, "Internal Error")), "the box answers error 820: Internal Error"),
    ("fritzbox", HOSTS, (500, upnp_error(402, "Invalid Args")), "error 402: check the address of the phone"),
    ("fritzbox", HOSTS, (500, SOAP.format("<UPnPError/>")), "error without a code: status 500"),
    ("fritzbox", HOSTS, (503, ""), r"the device at this address failed \(status 503\)"),
    ("fritzbox", HOSTS, (200, SOAP.format("<NewActive>2</NewActive>")), "is not a FRITZ!Box"),
    (
        "sonos",
        f"{TRANSPORT}#GetTransportInfo",
        (500, upnp_error(501, "x")),
        r"refuses GetTransportInfo \(error 501\)",
    ),
    ("sonos", f"{TRANSPORT}#GetTransportInfo", (200, "<html/>"), r"is not a Sonos \(status 200\)"),
    ("daikin", "/aircon/get_control_info", (200, "ret=PARAM NG"), r"the Daikin answers PARAM NG \(/aircon/get_contr"),
    ("daikin", "/aircon/get_control_info", (403, ""), r"is not a Daikin \(/aircon/get_control_info: status 403\)"),
    ("daikin", "/aircon/get_control_info", (200, "hello"), "is not a Daikin"),
    ("fronius", SOLAR, solar(8), "the inverter answers status 8: request to the device timed out"),
    ("fronius", SOLAR, solar(255, Reason="Some reason", UserMessage=""), "status 255: Some reason"),
    ("fronius", SOLAR, solar(99), "status 99: no reason"),
    ("fronius", SOLAR, solar(0), "is not a Fronius inverter whose Solar API is on"),
    ("tasmota_http", "/cm", {"WARNING": "Need user=<username>&password=<password>"}, "rejects the password"),
    ("tasmota_http", "/cm", (200, "<html>"), "is not a Tasmota"),
    ("hue", "/clip/v2/resource/motion", (500, "{}"), r"failed \(/clip/v2/resource/motion: status 500\)"),
    (
        "hue",
        "/clip/v2/resource/light",
        (404, "{}"),
        r"without a list of light \(/clip/v2.*: status 404\)",
    ),
    ("homewizard", "/api/v1/state", (403, "{}"), "the local API is off"),
    ("homewizard", "/api/v1/data", (404, "{}"), "so that version 2 is used"),
)


@pytest.mark.parametrize(("name", "path", "answer", "sentence"), UNKNOWN_CODES)
async def test_an_unknown_code_is_a_failed_poll_and_changes_nothing(
    pool: WorkerPool, tmp_path: Path, name: str, path: str, answer: Answer, sentence: str
) -> None:
    it = await begin(pool, tmp_path, name)
    before = {each.id: each.attributes for each in it.registry.list_devices()}
    it.vendor.odd[path] = answer
    for _ in range(3):
        with pytest.raises(AdapterFailed, match=sentence):
            await it.poll()
    assert {each.id: each.attributes for each in it.registry.list_devices()} == before and it.dropped == []


UNKNOWN_VALUES: tuple[tuple[str, str, str, Any], ...] = (
    ("homewizard", "/api/v1/state", "power", {"power_on": "yes"}),
    ("sonos", f"{TRANSPORT}#GetTransportInfo", "media_playback", "NEW_STATE"),
    ("sonos", f"{RENDERING}#GetMute", "muted", "maybe"),
    ("daikin", "/aircon/get_control_info", "hvac_mode", "ret=OK,pow=2,mode=3,stemp=25.0"),
    ("daikin", "/aircon/get_control_info", "hvac_mode", "ret=OK,pow=1,mode=9,stemp=25.0"),
    ("daikin", "/aircon/get_control_info", "hvac_mode", "ret=OK,mode=3,stemp=25.0"),
)


@pytest.mark.parametrize(("name", "path", "attribute", "value"), UNKNOWN_VALUES)
async def test_an_unknown_value_is_a_missing_value(
    pool: WorkerPool, tmp_path: Path, name: str, path: str, attribute: str, value: Any
) -> None:
    it = await begin(pool, tmp_path, name)
    answers = {
        "sonos": (
            200,
            SOAP.format(
                f"<r><CurrentTransportState>{value}</CurrentTransportState><CurrentMute>{value}</CurrentMute></r>"
            ),
        ),
        "daikin": (200, value),
    }
    it.vendor.odd[path] = answers.get(name, value)
    [device] = (await it.poll()).values()
    assert attribute not in device.attributes and it.dropped == []


async def test_only_code_714_of_a_fritzbox_means_absence(pool: WorkerPool, tmp_path: Path) -> None:
    it = await begin(pool, tmp_path, "fritzbox")
    assert (await it.poll())["anna"].attributes["presence"] is True
    it.vendor.odd[HOSTS] = (500, upnp_error(714, "NoSuchEntryInArray"))
    stated = {"people": [f"Ben={BEN}"], "away_after": 0}
    away = await start(pool, tmp_path, None, it.vendor, "fritzbox", **stated)
    assert (await away.poll())["ben"].attributes["presence"] is False


async def test_an_outage_of_a_fritzbox_does_not_count_as_absence(pool: WorkerPool, tmp_path: Path) -> None:
    it = await begin(pool, tmp_path, "fritzbox")
    box: Any = it.vendor
    box.active.update(dict.fromkeys(box.active, "0"))
    for name in [name for name in it.adapter.functions.memory if name != "reported"]:
        it.adapter.functions.memory[name] -= 3600
    assert (await it.poll())["anna"].attributes["presence"] is True, "there was no poll for an hour"


ORNAMENTS: tuple[tuple[str, str, Answer, Mapping[str, Any]], ...] = (
    ("sonos", f"{TRANSPORT}#GetPositionInfo", (500, "<html/>"), {"media_playback": "stopped", "volume": 12}),
    ("sonos", f"{RENDERING}#GetVolume", (500, "x"), {"media_playback": "stopped", "muted": False}),
    ("sonos", "/xml/device_description.xml", (200, "not XML"), {"media_playback": "stopped", "volume": 12}),
    (
        "daikin",
        "/common/basic_info",
        (200, "ret=PARAM NG"),
        {"hvac_mode": "off", "temperature_outdoor": {"value": 7.0, "unit": "°C"}},
    ),
    ("daikin", "/aircon/get_sensor_info", (500, ""), {"hvac_mode": "off"}),
    ("hue", "/clip/v2/resource/contact", (404, '{"errors": []}'), {"power": "off"}),
    (
        "homewizard",
        "/api/v1/data",
        {"active_power_w": 5},
        {"power": "off", "power_consumption": {"value": 5, "unit": "W"}},
    ),
)


@pytest.mark.parametrize(("name", "path", "answer", "shown"), ORNAMENTS)
async def test_an_invalid_optional_field_does_not_fail_the_device(
    pool: WorkerPool, tmp_path: Path, name: str, path: str, answer: Answer, shown: Mapping[str, Any]
) -> None:
    row = BUNDLED[name]
    vendor = row.vendor()
    vendor.odd[path] = answer
    it = await start(pool, tmp_path, None, vendor, row.kind, **row.stated)
    device = (await it.poll())[row.device]
    assert {**device.attributes, **shown} == device.attributes and it.dropped == []


async def test_one_home_of_tibber_without_a_price_does_not_fail_the_other(pool: WorkerPool, tmp_path: Path) -> None:
    vendor = Tibber()
    it = await start(pool, tmp_path, None, vendor, "tibber")
    await it.poll()
    whole = vendor.answer(vendor.asked[0])
    vendor.odd["/v1-beta/gql"] = {**whole, "errors": [{"message": "no data for home h2"}]}
    assert "custom.tibber.price" in (await it.poll())["h1"].attributes
    whole["data"]["viewer"]["homes"][0]["currentSubscription"] = None
    assert "custom.tibber.price" not in (await it.poll())["h1"].attributes, "the price of an earlier hour is wrong"


async def test_a_title_with_forbidden_characters_is_cleaned(pool: WorkerPool, tmp_path: Path) -> None:
    it = await begin(pool, tmp_path, "sonos")
    speaker: Any = it.vendor
    for title in ("So\x01ng\x0b", "Song\ufffe", "\x1bSong"):
        speaker.title = title
        player = (await it.poll())["player"]
        assert (player.attributes["media_title"], player.attributes["volume"]) == ("Song", 12)


XML: tuple[tuple[bytes, str | None], ...] = (
    (b"<a>so\x01ng\x00</a>", "song"),
    (b"\xef\xbb\xbf<a>x</a>\0", "x"),
    (b"\n <?xml version='1.0'?><a>x</a>\x00\n", "x"),
    (b"<a>&#1;x&#x0B;&#65;&#x42;&#0;&#55296;&#1114112;&#99999999;</a>", "xAB"),
    (b"<a>caf\xe9</a>", "caf\ufffd"),
    (b"<a>Tom & Jerry &amp; &#65;</a>", "Tom & Jerry & A"),
    (b"<a>Tom & Jerry&nbsp;</a>", "Tom & Jerry&nbsp;"),
    (b"<?xml version='1.0' encoding='iso-8859-1'?><a>caf\xe9\x01</a>", "café"),
    (b"<a>\xef\xbf\xbfx\xef\xbf\xbe\xed\xa0\x80</a>", "x\ufffd\ufffd\ufffd"),
    ("<?xml version='1.0' encoding='utf-16'?><a>x</a>".encode("utf-16"), "x"),
    ("<a>x\x01</a>".encode("utf-16"), None),
    (b"<a>", None),
    (b"", None),
    (b"\x01", None),
    (b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;\x01</a>", None),
)


@pytest.mark.parametrize(("text", "found"), XML)
async def test_forbidden_characters_are_removed_from_xml(text: bytes, found: str | None) -> None:
    received = decode_xml(text)
    assert received == (
        {"fault": "is not XML"}
        if found is None
        else {"value": {"name": "a", "attributes": {}, "text": found, "children": []}}
    )


STATE_TEXTS: tuple[tuple[Any, dict[str, str], list[str]], ...] = (
    (1, {"POWER1": "1"}, ["on"]),
    (0, {"POWER": "0"}, ["off"]),
    (2, {"POWER1": "aus", "POWER2": "an"}, ["off", "on"]),
    ("011", {"POWER1": "1", "POWER2": "1", "POWER3": "0"}, ["on", "on", "off"]),
    ("1", {"POWER": "AN"}, ["on"]),
    (0, {"POWER": "ON"}, ["on"]),
    (None, {"POWER": "AN"}, ["no value"]),
    ("x", {"POWER": "AN"}, ["no value"]),
)


@pytest.mark.parametrize(("bits", "words", "shown"), STATE_TEXTS)
async def test_tasmota_can_have_its_own_words_for_on_and_off(
    pool: WorkerPool, tmp_path: Path, bits: Any, words: dict[str, str], shown: list[str]
) -> None:
    vendor = Tasmota()
    vendor.status["Status"]["Power"] = bits
    del vendor.status["StatusSTS"]["POWER"]
    vendor.status["StatusSTS"].update(words)
    found = await (await start(pool, tmp_path, None, vendor, "tasmota_http")).poll()
    assert [each.attributes.get("power", "no value") for each in found.values()] == shown
    assert list(found) == [f"relay:{number}" for number in range(1, len(words) + 1)]


async def test_a_coloured_tasmota(pool: WorkerPool, tmp_path: Path) -> None:
    vendor = Tasmota()
    vendor.status["StatusSTS"] |= {"POWER": "ON", "Dimmer": 40, "CT": 300, "HSBColor": "120,90,40", "White": 0}
    it = await start(pool, tmp_path, None, vendor, "tasmota_http")
    lamp = (await it.poll())["relay:1"]
    assert (
        lamp.attributes["color_hs"] == {"hue": 120, "saturation": 90} and "color_temperature" not in lamp.attributes
    )
    assert await it.command("relay:1", "color_hs", "set", {"hue": 240, "saturation": 50}) is None
    assert vendor.status["StatusSTS"]["HSBColor"] == "240,50,40"
    vendor.status["StatusSTS"]["White"] = 40
    lamp = (await it.poll())["relay:1"]
    assert "color_hs" not in lamp.attributes and lamp.attributes["color_temperature"]["value"] == 3333
    assert it.dropped == []


async def test_unsupported_parts_of_hue_are_named_once(
    pool: WorkerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bridge = HueBridge()
    services = [{"rid": "r1", "rtype": "relative_rotary"}, {"rid": "b", "rtype": "bridge"}]
    bridge.others["device"] = [{"id": "d2", "type": "device", "metadata": {"name": "Dial"}, "services": services}]
    it = await start(pool, tmp_path, None, bridge, "hue")
    for _ in range(2):
        await it.poll()
    lines = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert lines == ["this kind does not show relative_rotary of the bridge's devices"]


WRITES: tuple[tuple[str, str], ...] = (
    ("shelly_one", "/relay/0"),
    ("shelly_two", "/rpc"),
    ("homewizard", "/api/v1/state"),
    ("hue", "/clip/v2/resource/light/light1"),
    ("daikin", "/aircon/set_control_info"),
    ("sonos", f"{TRANSPORT}#Play"),
)


@pytest.mark.parametrize("body", ["", "{", "<html>", "null", "\x00\x01"])
@pytest.mark.parametrize(("name", "path"), WRITES)
async def test_a_write_whose_answer_cannot_be_read_is_read_back(
    pool: WorkerPool, tmp_path: Path, name: str, path: str, body: str
) -> None:
    row = BUNDLED[name]
    it = await begin(pool, tmp_path, name)
    command = row.commands["on"].command

    def apply(asked: WebRequest) -> Answer:
        good = it.vendor.answer(asked)
        return good if asked.method == "GET" and name == "homewizard" else (200, body)

    def ignore(asked: WebRequest) -> Answer:
        return it.vendor.answer(asked) if asked.method == "GET" and name == "homewizard" else (200, body)

    it.vendor.odd[path] = apply
    assert await it.command(row.device, command.capability, command.action, command.value) is None
    command = row.commands["off"].command
    it.vendor.odd[path if name != "sonos" else f"{TRANSPORT}#Pause"] = ignore
    output = await it.command(row.device, command.capability, command.action, command.value)
    assert output and " was sent " in output, "the command had no effect"


async def test_a_cut_answer_of_tasmota_to_a_command_is_read_back(pool: WorkerPool, tmp_path: Path) -> None:
    it = await begin(pool, tmp_path, "tasmota_http")
    plug: Any = it.vendor
    plug.status["StatusSTS"]["POWER"] = "OFF"

    def cut(asked: WebRequest) -> Answer:
        good = it.vendor.answer(asked)
        return good if asked.query["cmnd"] == "Status 0" else (200, '{"POW')

    it.vendor.odd["/cm"] = cut
    assert await it.command("relay:1", "power", "on") is None


REFUSALS: tuple[tuple[str, str, Answer, str], ...] = (
    (
        "daikin",
        "/aircon/set_control_info",
        (200, "ret=PARAM NG"),
        "the Daikin answers PARAM NG (/aircon/set_control_info)",
    ),
    (
        "hue",
        "/clip/v2/resource/light/light1",
        (404, '{"errors":[{"description":"Not Found"}]}'),
        "the bridge refuses: Not Found",
    ),
    ("hue", "/clip/v2/resource/light/light1", (500, "x"), "the bridge refuses: status 500"),
    (
        "sonos",
        f"{TRANSPORT}#Play",
        (500, upnp_error(701, "x")),
        "the player refuses Play (it has nothing to play, or is in that state already)",
    ),
    ("shelly_one", "/relay/0", (404, ""), "the Shelly refuses: status 404"),
    (
        "shelly_two",
        "/rpc",
        {"id": 1, "error": {"code": -105, "message": "No handler"}},
        "the Shelly refuses: No handler",
    ),
    (
        "homewizard",
        "/api/v1/state",
        (403, ""),
        "the socket refuses with status 403; check its switch lock in the app",
    ),
)


@pytest.mark.parametrize(("name", "path", "answer", "sentence"), REFUSALS)
async def test_a_refusal_is_in_the_words_of_the_device(
    pool: WorkerPool, tmp_path: Path, name: str, path: str, answer: Answer, sentence: str
) -> None:
    row = BUNDLED[name]
    it = await begin(pool, tmp_path, name)
    it.vendor.odd[path] = answer
    command = row.commands["on"].command
    assert await it.command(row.device, command.capability, command.action, command.value) == sentence


async def test_a_partial_success_of_hue_is_read_back(pool: WorkerPool, tmp_path: Path) -> None:
    it = await begin(pool, tmp_path, "hue")
    bridge = it.vendor
    assert isinstance(bridge, HueBridge)
    warning = {"errors": [{"description": "device (light) has communication issues"}], "data": []}
    bridge.odd["/clip/v2/resource/light/light1"] = (207, json.dumps(warning))
    assert await it.command("lamp1", "power", "on") == "it:lamp1 was sent power on but shows 'off'"


FAULTS = {
    429: "the device at this address is busy",
    502: "the device at this address failed",
}


LOCAL = ["daikin", "fritzbox", "fronius", "homewizard", "hue", "shelly_one", "shelly_two", "sonos", "tasmota_http"]
"""The kinds of devices with an address in the local network."""


@pytest.mark.parametrize("status", FAULTS)
@pytest.mark.parametrize("name", LOCAL)
async def test_a_busy_device_is_not_taken_for_another(
    pool: WorkerPool, tmp_path: Path, name: str, status: int
) -> None:
    class Busy(Vendor):
        async def exchange(self, request: WebRequest) -> HttpResponse:
            return HttpResponse(status=status, headers={}, body=b"")

    row = BUNDLED[name]
    it = await start(pool, tmp_path, None, Busy(), row.kind, **row.stated)
    with pytest.raises(AdapterFailed, match=rf"{FAULTS[status]} \(.*status {status}\)"):
        await it.poll()


@pytest.mark.parametrize("name", LOCAL)
async def test_the_error_of_a_moved_device_contains_its_new_address(
    pool: WorkerPool, tmp_path: Path, name: str
) -> None:
    class Moved(Vendor):
        """A device whose requests go through the real `Origins`."""

        async def exchange(self, request: WebRequest) -> HttpResponse:
            return await origins.exchange(request)

    row, moved = BUNDLED[name], b"HTTP/1.1 301 Moved\r\nLocation: https://10.0.0.7/x\r\nContent-Length: 0\r\n\r\n"
    async with RawVendor(moved) as server, DeviceSession() as session:
        origins = origins_of(session, server.url)
        it = await start(pool, tmp_path, None, Moved(), row.kind, **row.stated)
        with pytest.raises(AdapterFailed, match=r" https://10\.0\.0\.7; correct base_url"):
            await it.poll()


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_bridge_gets_the_command_once_more(status: int) -> None:
    async with trial(BUNDLED["hue"].subject()) as it:
        sent: list[WebRequest] = []

        def answer(asked: WebRequest) -> Answer:
            sent.append(asked)
            return (status, "busy") if len(sent) == 1 else it.vendor.answer(asked)

        it.vendor.odd["/clip/v2/resource/light/light1"] = answer
        assert await it.succeeds("on") and len(sent) == 2


async def test_an_older_hue_bridge_lacks_some_types(pool: WorkerPool, tmp_path: Path) -> None:
    vendor = HueBridge()
    for what in ("motion", "temperature", "light_level", "device_power", "contact", "button"):
        vendor.odd[f"/clip/v2/resource/{what}"] = (404, "{}")
    it = await start(pool, tmp_path, None, vendor, "hue")
    assert set(await it.poll()) == {"lamp1", "lamp2"}


async def test_an_empty_bridge_is_logged_once(
    pool: WorkerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vendor = HueBridge()
    for number in (1, 2):
        vendor.remove(number)
    it = await start(pool, tmp_path, None, vendor, "hue")
    for _ in range(2):
        await it.adapter.poll_once()
    [line] = [each.getMessage() for each in caplog.records]
    assert line.startswith("it: the answer contains no device; it contains /clip/v2/resource/device: errors, data;")


async def test_the_table_has_every_kind_that_can_be_commanded() -> None:
    commanded = {name for name, row in BUNDLED.items() if row.commands}
    assert commanded == {name for name, _ in WRITES} | {"tasmota_http"}
