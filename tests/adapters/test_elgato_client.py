"""The client of Elgato's protocol, as tables: what real devices say, and what no device should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aioresponses import aioresponses
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from yarl import URL

from appliance.adapters.device_http import DeviceSession, HttpClient
from appliance.adapters.elgato_lights.client import ElgatoClient, LightState
from appliance.errors import BadAnswer, Invalid
from tests.fakes.clock import VirtualClock
from tests.fakes.rows import each_row

CAPTURES = Path(__file__).parents[1] / "fixtures" / "elgato"
ADDRESS = "http://192.168.1.20:9123"
LIGHTS = f"{ADDRESS}/elgato/lights"
INFO = f"{ADDRESS}/elgato/accessory-info"
IDENTIFY = f"{ADDRESS}/elgato/identify"


@pytest.fixture
def client(session: DeviceSession, clock: VirtualClock) -> ElgatoClient:
    """The client of a device that is not there."""
    return ElgatoClient(HttpClient(session, ADDRESS, clock))


def _asked(answers: aioresponses, method: str, url: str) -> int:
    return len(answers.requests.get((method, URL(url)), []))


# --- what real devices say -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capture", "light"),
    [
        ("state-temperature.json", LightState(on=True, brightness=21, mired=297)),
        ("state-color.json", LightState(on=True, brightness=50, hue=358.0, saturation=6.0)),
    ],
)
async def test_the_states_of_real_lights_are_read(
    answers: aioresponses, client: ElgatoClient, capture: str, light: LightState
) -> None:
    answers.get(LIGHTS, body=(CAPTURES / capture).read_bytes())
    assert [LightState.parse(raw) for raw in await client.fetch_lights()] == [light]


@pytest.mark.parametrize("capture", sorted(path.name for path in CAPTURES.glob("info-*.json")))
async def test_the_information_of_real_lights_is_given_as_it_is(
    answers: aioresponses, client: ElgatoClient, capture: str
) -> None:
    body = (CAPTURES / capture).read_bytes()
    answers.get(INFO, body=body)
    assert await client.fetch_info() == json.loads(body)


async def test_lights_are_written_in_the_words_of_the_protocol(answers: aioresponses, client: ElgatoClient) -> None:
    answers.put(LIGHTS, body=b"")
    lights = [{"on": 1, "brightness": 3, "temperature": 200}, {}]
    await client.put_lights(lights, repeat=True)
    [request] = answers.requests[("PUT", URL(LIGHTS))]
    assert request.kwargs["json"] == {"numberOfLights": 2, "lights": lights}


async def test_identify_is_a_bare_post(answers: aioresponses, client: ElgatoClient) -> None:
    answers.post(IDENTIFY)
    await client.identify()
    [request] = answers.requests[("POST", URL(IDENTIFY))]
    assert request.kwargs["json"] is None


# --- what no device should say -------------------------------------------------------------------

NOT_JSON = {
    "empty": b"",
    "white space": b" \n\t ",
    "text": b"lamp is fine",
    "html": b"<!DOCTYPE html><html><body>Log in to Wi-Fi</body></html>",
    "truncated": (CAPTURES / "state-temperature.json").read_bytes()[:-20],
    "not UTF-8": b'{"lights": ["\xff\xfe"]}',
    "a lone surrogate": b'{"lights": ["\\ud800"]}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "not a number": b'{"lights": NaN}',
    "beyond numbers": b'{"lights": 1e400}',
    "two documents": b'{"lights": []}{"lights": []}',
    "nested without end": b"[" * 100_000,
    "zeros": b"\x00" * 64,
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00",
}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
async def test_what_is_not_json_is_a_bad_answer(answers: aioresponses, client: ElgatoClient, body: bytes) -> None:
    for url, fetch in ((LIGHTS, client.fetch_lights), (INFO, client.fetch_info)):
        answers.get(url, body=body)
        with pytest.raises(BadAnswer) as failed:
            await fetch()
        assert str(failed.value) == f"{ADDRESS} answered with something that is not JSON"
        assert _asked(answers, "GET", url) == 1


@pytest.mark.parametrize("body", [b"null", b"true", b"7", b'"lights"', b"[]", b'[{"lights": []}]'])
async def test_json_that_is_not_an_object_is_a_bad_answer(
    answers: aioresponses, client: ElgatoClient, body: bytes
) -> None:
    for url, fetch in ((LIGHTS, client.fetch_lights), (INFO, client.fetch_info)):
        answers.get(url, body=body)
        with pytest.raises(BadAnswer) as failed:
            await fetch()
        assert str(failed.value) == f"{ADDRESS} answered with JSON that is not an object"


@pytest.mark.parametrize(
    "body", [b"{}", b'{"lights": null}', b'{"lights": {}}', b'{"lights": 1}', b'{"lights": "on"}', b'{"Lights": []}']
)
async def test_an_answer_without_a_list_of_lights_is_a_bad_answer(
    answers: aioresponses, client: ElgatoClient, body: bytes
) -> None:
    answers.get(LIGHTS, body=body)
    with pytest.raises(BadAnswer) as failed:
        await client.fetch_lights()
    assert str(failed.value) == f"{LIGHTS} answered without a list of lights"


@pytest.mark.parametrize("lights", [[], [None], [{"on": "yes"}, 7, [[]]], [{}] * 1000])
async def test_entries_are_not_judged_here_and_their_number_is_theirs(
    answers: aioresponses, client: ElgatoClient, lights: list[Any]
) -> None:
    answers.get(LIGHTS, payload={"numberOfLights": 77, "lights": lights})
    assert await client.fetch_lights() == lights


# --- one light -----------------------------------------------------------------------------------

LAMP: dict[str, Any] = {"on": 1, "brightness": 50, "temperature": 200}
COLOUR: dict[str, Any] = {"on": 0, "brightness": 50, "hue": 10, "saturation": 20.5}


@each_row(
    ("raw", "light"),
    [
        (LAMP, LightState(on=True, brightness=50, mired=200)),
        ({**LAMP, "on": 0}, LightState(on=False, brightness=50, mired=200)),
        ({**LAMP, "on": 1.0, "brightness": 7.0, "temperature": 143.0}, LightState(on=True, brightness=7, mired=143)),
        ({**LAMP, "brightness": 0}, LightState(on=True, brightness=0, mired=200)),
        ({**LAMP, "brightness": 100}, LightState(on=True, brightness=100, mired=200)),
        ({**LAMP, "temperature": 143}, LightState(on=True, brightness=50, mired=143)),
        ({**LAMP, "temperature": 344}, LightState(on=True, brightness=50, mired=344)),
        ({**LAMP, "flavour": {"of": ["vanilla"]}}, LightState(on=True, brightness=50, mired=200)),
        ({**LAMP, "hue": 1, "saturation": 2}, LightState(on=True, brightness=50, mired=200)),
        (COLOUR, LightState(on=False, brightness=50, hue=10, saturation=20.5)),
        ({**COLOUR, "hue": 0, "saturation": 0}, LightState(on=False, brightness=50, hue=0, saturation=0)),
    ],
)
def test_a_light_is_read(raw: Any, light: LightState) -> None:
    assert LightState.parse(raw) == light


@each_row(
    ("raw", "fault"),
    [
        (None, "is not an object but null"),
        ([], "is not an object but an array"),
        ("lamp", "is not an object but 'lamp'"),
        (3, "is not an object but 3"),
        ({}, "has none of on, brightness, temperature, hue, saturation"),
        ({"flavour": 1}, "has none of on, brightness, temperature, hue, saturation"),
    ],
)
def test_what_is_no_light_says_so(raw: Any, fault: str) -> None:
    with pytest.raises(Invalid) as failed:
        LightState.parse(raw)
    assert str(failed.value) == fault


@each_row(
    ("lamp", "name", "value", "fault"),
    [
        (LAMP, "on", True, "on must be an integer from 0 to 1, not true"),
        (LAMP, "on", 2, "on must be an integer from 0 to 1, not 2"),
        (LAMP, "on", -1, "on must be an integer from 0 to 1, not -1"),
        (LAMP, "on", 0.5, "on must be an integer from 0 to 1, not 0.5"),
        (LAMP, "on", "on", "on must be an integer from 0 to 1, not 'on'"),
        (LAMP, "brightness", 101, "brightness must be an integer from 0 to 100, not 101"),
        (LAMP, "brightness", -1, "brightness must be an integer from 0 to 100, not -1"),
        (LAMP, "brightness", None, "brightness must be an integer from 0 to 100, not null"),
        (LAMP, "brightness", float("inf"), "brightness must be an integer from 0 to 100, not inf"),
        (LAMP, "temperature", 142, "temperature must be an integer from 143 to 344, not 142"),
        (LAMP, "temperature", 345, "temperature must be an integer from 143 to 344, not 345"),
        (LAMP, "temperature", {}, "temperature must be an integer from 143 to 344, not an object"),
        (COLOUR, "hue", "red", "hue must be a number, not 'red'"),
        (COLOUR, "saturation", True, "saturation must be a number, not true"),
    ],
)
def test_a_wrong_field_is_said_and_the_rest_of_the_light_counts(
    lamp: dict[str, Any], name: str, value: Any, fault: str
) -> None:
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
def test_any_json_is_a_light_within_its_bounds_or_a_fault_on_one_line(raw: Any) -> None:
    try:
        light = LightState.parse(raw)
    except Invalid as fault:
        assert "\n" not in str(fault) and len(str(fault)) < 160
        return
    assert all("\n" not in each and len(each) < 160 for each in light.wrong.values())
    assert light.brightness is None or 0 <= light.brightness <= 100
    assert light.mired is None or light.hue is light.saturation is None
    assert light.mired is None or 143 <= light.mired <= 344
