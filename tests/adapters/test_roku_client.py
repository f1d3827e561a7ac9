"""The client of Roku's protocol, as tables: what real devices say, and what no device should."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import aiohttp
import pytest
from aioresponses import aioresponses
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from appliance.adapters.device_http import DeviceSession, HttpClient
from appliance.adapters.roku_tv.client import DeviceInfo, RokuClient
from appliance.errors import BadAnswer, Unreachable
from tests.fakes.clock import VirtualClock
from tests.fakes.rows import each_row

CAPTURES = Path(__file__).parents[1] / "fixtures" / "roku"
ADDRESS = "http://192.168.1.30:8060"
INFO = f"{ADDRESS}/query/device-info"
POWER = f"{ADDRESS}/keypress/Power"


@pytest.fixture
def client(session: DeviceSession, clock: VirtualClock) -> RokuClient:
    """The client of a TV that is not there."""
    return RokuClient(HttpClient(session, ADDRESS, clock))


def _xml(inside: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8" ?>\n<device-info>{inside}</device-info>\n'.encode()


# --- what real devices say -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capture", "mode", "is_on", "name", "model"),
    [
        ("device-info", "PowerOn", True, "My Roku 3", "Roku 3"),
        ("device-info-standby", "Ready", False, "My Roku 3", "Roku 3"),
        ("device-info-power-off", "PowerOff", False, "My Roku 3", "Roku 3"),
        ("device-info-3500x", "PowerOn", True, "My Roku Stick", "Roku Stick"),
    ],
)
async def test_real_devices_are_read(
    answers: aioresponses, client: RokuClient, capture: str, mode: str, is_on: bool, name: str, model: str
) -> None:
    body = (CAPTURES / f"{capture}.xml").read_bytes()
    answers.get(INFO, body=body)
    info = await client.fetch_info()
    assert (info.power_mode, info.is_on) == (mode, is_on)
    assert (info.friendly_name, info.model_name) == (name, model)
    elements = {element.tag: element.text or "" for element in ElementTree.fromstring(body)}
    assert (info.fields, len(elements) > 30) == (elements, True)


def test_every_capture_is_read_above() -> None:
    assert len(list(CAPTURES.iterdir())) == 4


@each_row(
    ("inside", "mode", "is_on"),
    [
        ("<power-mode>PowerOn</power-mode>", "PowerOn", True),
        ("<power-mode> PowerOn\n</power-mode>", "PowerOn", True),
        ("<power-mode>Ready</power-mode>", "Ready", False),
        ("<power-mode>Headless</power-mode>", "Headless", False),
        ("<power-mode>DisplayOff</power-mode>", "DisplayOff", False),
        ("<power-mode>PowerOff</power-mode>", "PowerOff", False),
        ("<power-mode>poweron</power-mode>", "poweron", False),
        ("<power-mode></power-mode>", "", False),
        ("<power-mode/>", "", False),
        ("", None, True),
        ("<is-stick>true</is-stick>", None, True),
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
        ("<user-device-name> \n</user-device-name><friendly-device-name>TV</friendly-device-name>", "TV"),
        ("<friendly-device-name>TV</friendly-device-name>", "TV"),
        ("<user-device-name>Den</user-device-name>", "Den"),
        ("<user-device-name>Tom &amp; &quot;Jerry&quot; &#228;&#x1F4FA;</user-device-name>", 'Tom & "Jerry" ä📺'),
        ("<user-device-name/><friendly-device-name/>", None),
        ("", None),
    ],
)
def test_the_name_is_the_owners_if_there_is_one(inside: str, name: str | None) -> None:
    assert DeviceInfo.parse(_xml(inside)).friendly_name == name


@each_row("encoding", ["utf-8", "utf-16", "iso-8859-1", "windows-1252"])
def test_the_encoding_that_the_document_declares_is_its_own(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><device-info><model-name>Käse</model-name></device-info>'
    assert DeviceInfo.parse(text.encode(encoding)).model_name == "Käse"


@pytest.mark.parametrize("key", ["PowerOn", "PowerOff", "Power"])
async def test_a_key_is_a_post_without_a_body(answers: aioresponses, client: RokuClient, key: str) -> None:
    answers.post(f"{ADDRESS}/keypress/{key}", status=202)
    await client.press(key)
    [request] = answers.requests[("POST", URL(f"{ADDRESS}/keypress/{key}"))]
    assert request.kwargs["json"] is None


# --- what no device should say -------------------------------------------------------------------

NOT_XML = {
    "empty": b"",
    "white space": b" \n ",
    "text": b"PowerOn",
    "JSON": b'{"power-mode": "PowerOn"}',
    "zeros": b"\x00" * 64,
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
    "truncated": (CAPTURES / "device-info.xml").read_bytes()[:700],
    "not closed": b"<device-info><power-mode>PowerOn</power-mode>",
    "crossed": b"<device-info><a><b></a></b></device-info>",
    "two roots": b"<device-info/><device-info/>",
    "not UTF-8": b"<device-info><model-name>\xff\xfe</model-name></device-info>",
    "a lone surrogate": b"<device-info>&#xD800;</device-info>",
    "a zero": b"<device-info>\x00</device-info>",
    "an undeclared entity": b"<device-info>&power;</device-info>",
    "an unknown encoding": b'<?xml version="1.0" encoding="klingon"?><device-info/>',
    "an encoding of many bytes": b'<?xml version="1.0" encoding="shift_jis"?><device-info/>',
    "an encoding that is none": b'<?xml version="1.0" encoding="base64"?><device-info/>',
    "an encoding with side effects": b'<?xml version="1.0" encoding="idna"?><device-info/>',
    "UTF-32": '<?xml version="1.0" encoding="utf-32"?><device-info/>'.encode("utf-32"),
    "nested without end": b"<a>" * 40_000,
    "attributes twice": b"<device-info a='1' a='2'/>",
}


@pytest.mark.parametrize("body", NOT_XML.values(), ids=NOT_XML.keys())
async def test_what_is_not_xml_is_a_bad_answer(answers: aioresponses, client: RokuClient, body: bytes) -> None:
    answers.get(INFO, body=body)
    with pytest.raises(BadAnswer) as failed:
        await client.fetch_info()
    assert str(failed.value) == f"{ADDRESS} answered with something that is not XML"


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 20))

TRAPS = {
    "billion laughs": f'<!DOCTYPE d [<!ENTITY l0 "ha">{LAUGHS}]><device-info>&l19;</device-info>',
    "quadratic": f'<!DOCTYPE d [<!ENTITY a "{"a" * 9999}">]><device-info>{"&a;" * 9999}</device-info>',
    "a file": '<!DOCTYPE d [<!ENTITY f SYSTEM "file:///etc/passwd">]><device-info>&f;</device-info>',
    "an address": '<!DOCTYPE d [<!ENTITY f SYSTEM "http://127.0.0.1:1/">]><device-info>&f;</device-info>',
    "a parameter": '<!DOCTYPE d [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]><device-info/>',
    "a document type elsewhere": '<!DOCTYPE d SYSTEM "http://127.0.0.1:1/d.dtd"><device-info/>',
    "a harmless document type": "<!DOCTYPE device-info><device-info/>",
    "an entity that is not used": '<!DOCTYPE d [<!ENTITY a "b">]><device-info/>',
    "a page": "<!DOCTYPE html><html><body>Log in to Wi-Fi</body></html>",
}


@pytest.mark.parametrize("body", TRAPS.values(), ids=TRAPS.keys())
async def test_a_document_type_is_refused_unread(answers: aioresponses, client: RokuClient, body: str) -> None:
    answers.get(INFO, body=body)
    with pytest.raises(BadAnswer) as failed:
        await client.fetch_info()
    assert str(failed.value) == f"{ADDRESS} answered with XML that declares a document type, which is refused"


@pytest.mark.parametrize(
    "body",
    [
        "<apps/>",
        "<html><body>Log in</body></html>",
        "<Device-Info/>",
        '<device-info xmlns="urn:other"><power-mode>PowerOn</power-mode></device-info>',
        "<root><device-info><power-mode>PowerOn</power-mode></device-info></root>",
    ],
)
async def test_another_root_is_a_bad_answer(answers: aioresponses, client: RokuClient, body: str) -> None:
    answers.get(INFO, body=body)
    with pytest.raises(BadAnswer) as failed:
        await client.fetch_info()
    assert str(failed.value) == f"{ADDRESS} answered with XML that is not a device-info"


def test_a_document_that_is_large_and_deep_is_read() -> None:
    assert DeviceInfo.parse(_xml("<a>" * 30_000 + "</a>" * 30_000)).is_on
    assert len(DeviceInfo.parse(_xml("".join(f"<e{n}/>" for n in range(20_000)))).fields) == 20_000


async def test_a_403_says_which_setting_of_the_tv_forbids_it(answers: aioresponses, client: RokuClient) -> None:
    answers.get(INFO, status=403)
    answers.post(POWER, status=403)
    for work in (client.fetch_info(), client.press("Power")):
        with pytest.raises(BadAnswer) as failed:
            await work
        assert str(failed.value).startswith(f"{ADDRESS} refuses to be controlled: on the TV, open Settings > System")
        assert "Control by mobile apps" in str(failed.value)


async def test_a_key_press_is_never_repeated_and_a_reading_once(
    answers: aioresponses, client: RokuClient, clock: VirtualClock
) -> None:
    for failure in (aiohttp.ServerDisconnectedError(), TimeoutError(), OSError(113, "No route to host")):
        answers.get(INFO, exception=failure, repeat=True)
        answers.post(POWER, exception=failure, repeat=True)
        for work in (client.fetch_info(), client.press("Power")):
            with pytest.raises(Unreachable, match=f"{ADDRESS} does not answer [(].+[)]"):
                await clock.run(work)
    assert len(answers.requests[("POST", URL(POWER))]) == 3
    assert len(answers.requests[("GET", URL(INFO))]) == 6


@given(st.binary(max_size=200) | st.text(max_size=80).map(_xml))
def test_any_bytes_are_a_device_or_a_bad_answer(body: bytes) -> None:
    try:
        info = DeviceInfo.parse(body)
    except BadAnswer as error:
        assert str(error).isprintable()
        return
    assert info.is_on or info.power_mode is not None


async def test_a_capture_cut_at_any_byte_is_a_device_only_when_whole() -> None:
    body = (CAPTURES / "device-info.xml").read_bytes().rstrip()
    for end in range(len(body)):
        with pytest.raises(BadAnswer):
            DeviceInfo.parse(body[:end])
