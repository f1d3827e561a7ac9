"""`/kinds` and `/files/sections`: the data for a form that adds, changes, tries, and removes an adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.kinds import KINDS
from appliance.adapters.lua_kinds.definition import list_bundled_kinds
from tests.adapters.lua_kinds.simulators import Tasmota
from tests.fakes.app import App, open_app
from tests.fakes.patience import until

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

PASSWORD = "pw-9f/3a-long"
CONFIG = f"""# mine
[adapters.plug]  # in the kitchen
type = "tasmota_http"
base_url = "http://127.0.0.1:9"  # fixed
password = "{PASSWORD}"
# password = "old-password"

# The rest.
[adapters.lamp]
type = "elgato_lights"
enabled = false
base_url = "http://127.0.0.1:9"
"""
OWN = """return {
  name = "Own kind",
  settings = {
    city = { type = "string", required = true, description = "the city" },
    every = { type = "duration", default = "5m" },
    size = { type = "integer", min = 1, max = 9, default = 3 },
    mode = { type = "string", values = { "a", "b" } },
    api_key = { type = "string" },
    rooms = { type = "list" },
  },
  base_url = "http://127.0.0.1:9",
  poll = function(ctx)
    local answer = ctx:http { path = "/x", query = { key = ctx.settings.api_key } }
    local now = { temperature = { value = answer.json.t, unit = "celsius" } }
    return { { id = "it", kind = "Sensor", attributes = now } }
  end,
}
"""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    """Run a hub with its own configuration and a kind in Lua."""
    root = tmp_path_factory.mktemp("home")
    (root / "config" / "adapters").mkdir(parents=True)
    (root / "config" / "adapters" / "own.lua").write_text(OWN)
    (root / "config" / "adapters" / "broken.lua").write_text("return {")
    (root / "config" / "default.toml").write_text(CONFIG)
    async with open_app(root=root, file=root / "config" / "default.toml", wait_until_ready=False) as app:
        yield app


def text_of(file: Path) -> str:
    return file.read_text()


@pytest.fixture
def file(home: App) -> Path:
    """Write the initial configuration, and return its path."""
    path = Path(home.hub._config.file)
    path.write_text(CONFIG)
    return path


async def test_every_kind_has_a_form(home: App) -> None:
    kinds = {each["name"]: each for each in (await home.get("/kinds")).json["kinds"]}
    assert kinds.keys() == {*KINDS, *list_bundled_kinds(), "own", "broken"}
    assert all(each["title"] for each in kinds.values())
    assert "broken.lua" in kinds["broken"]["fault"] and kinds["own"]["fault"] is None
    mqtt = {each["name"]: each for each in kinds["mqtt"]["settings"]}
    assert mqtt.keys() == KINDS["mqtt"].settings.FIELDS.keys()
    assert all(each["description"] for kind in KINDS for each in kinds[kind]["settings"])
    assert next(iter(mqtt)) == "host" and mqtt["host"]["is_required"] and mqtt["host"]["example"] == "192.168.1.40"
    port = {"type": "integer", "min": 1, "max": 65535, "is_required": False, "default": None, "is_rare": False}
    assert mqtt["port"].items() >= port.items()
    assert mqtt["tls"].items() >= {"type": "boolean", "default": False, "is_rare": True}.items()
    assert mqtt["password"].items() >= {"is_secret": True, "default": None, "example": None}.items()


OWN_SETTINGS: dict[str, dict[str, Any]] = {
    "city": {"type": "string", "is_required": True, "description": "the city", "is_rare": False},
    "every": {"type": "duration", "default": 300, "is_required": False},
    "size": {"type": "integer", "min": 1, "max": 9, "default": 3},
    "mode": {"type": "string", "values": ["a", "b"]},
    "api_key": {"type": "string", "is_secret": True},
    "rooms": {"type": "list"},
    "base_url": {"default": "http://127.0.0.1:9", "is_rare": True},
    "poll_interval_secs": {"type": "integer", "default": 5, "is_rare": True},
}


async def test_a_kind_in_lua_has_the_settings_of_its_file(home: App) -> None:
    kinds = {each["name"]: each for each in (await home.get("/kinds")).json["kinds"]}
    own = {each["name"]: each for each in kinds["own"]["settings"]}
    assert {name: own[name].items() >= stated.items() for name, stated in OWN_SETTINGS.items()} == dict.fromkeys(
        OWN_SETTINGS, True
    )
    assert next(iter(own)) == "city" and {*[*own][:6]} == {*[*OWN_SETTINGS][:6]}
    assert not own.keys() & {"type", "enabled"}
    shelly = [each for each in kinds["shelly"]["settings"] if each["is_required"]]
    assert [each["name"] for each in shelly] == ["base_url"] and "192.168.1.50" in shelly[0]["description"]


async def test_sections_are_listed_without_secrets(home: App, file: Path) -> None:
    found = (await home.get("/files/sections")).json
    assert found["version"] == (await home.get("/files/config%2Fdefault.toml")).json["version"]
    url = {"base_url": "http://127.0.0.1:9"}
    assert found["sections"] == [
        {"name": "lamp", "kind": "elgato_lights", "is_enabled": False, "values": url},
        {"name": "plug", "kind": "tasmota_http", "is_enabled": True, "values": {**url, "password": "***"}},
    ]


CHANGES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "a value; a hidden secret stays": (
        "plug",
        {"kind": "tasmota_http", "values": {"base_url": "http://127.0.0.1:8", "password": "***"}},
        '"http://127.0.0.1:9"  # fixed',
        '"http://127.0.0.1:8"  # fixed',
    ),
    "a secret": (
        "plug",
        {"kind": "tasmota_http", "values": {"password": "new-password"}},
        f'"{PASSWORD}"',
        '"new-password"',
    ),
    "a removed key": (
        "plug",
        {"kind": "tasmota_http", "values": {"password": None}},
        f'password = "{PASSWORD}"\n#',
        "#",
    ),
    "a switch": ("lamp", {"kind": "elgato_lights", "values": {"enabled": True}}, "enabled = false", "enabled = true"),
    "a new section": (
        "strip",
        {"kind": "wled", "values": {"base_url": "http://127.0.0.1:9", "enabled": False}, "is_new": True},
        'base_url = "http://127.0.0.1:9"\n',
        'base_url = "http://127.0.0.1:9"\n\n[adapters.strip]\ntype = "wled"\nbase_url = "http://127.0.0.1:9"\n'
        "enabled = false\n",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
async def test_a_section_is_changed_and_everything_else_kept(home: App, file: Path, what: str) -> None:
    name, asked, old, new = CHANGES[what]
    saved = await home.ask("PUT", f"/files/sections/{name}", json=asked)
    assert saved.status == 200, saved.json
    before, _, after = CONFIG.rpartition(old)
    assert text_of(file) == before + new + after
    assert saved.json["version"] == (await home.get("/files/sections")).json["version"]


async def test_a_section_is_removed_and_its_adapter_stops(home: App, file: Path) -> None:
    assert (await home.post("/adapters/reload")).json["status"] == "error"  # the broken kind
    assert (await home.get("/adapters/plug")).status == 200
    assert (await home.delete("/files/sections/plug")).status == 204
    assert "plug" not in text_of(file) and "# The rest." in text_of(file)
    assert (await home.get("/adapters/plug")).status == 404
    assert (await home.delete("/files/sections/plug")).json["code"] == "section_not_found"


async def test_a_light_is_tested_without_being_added(home: App, file: Path) -> None:
    async with LightSimulator() as light:
        asked = {"kind": "elgato_lights", "values": {"base_url": light.url}}
        tried = (await home.post("/files/sections/desk/try", asked)).json
    assert tried["error"] is None, tried
    assert [each["id"] for each in tried["devices"]] == ["desk:light:0"]
    assert text_of(file) == CONFIG and (await home.get("/devices/desk:light:0")).status == 404
    tried = (await home.post("/files/sections/desk/try", asked)).json
    assert light.url.removeprefix("http://") in tried["error"] and tried["devices"] == []


async def test_a_kind_in_lua_shows_its_requests_and_no_secret(home: App, file: Path) -> None:
    async with Tasmota(password=PASSWORD) as vendor:
        asked: Any = {"kind": "tasmota_http", "values": {"base_url": vendor.url, "password": "***"}}
        tried = await home.post("/files/sections/plug/try", asked)
        assert tried.json["error"] is None and "plug:relay:1" in str(tried.json["devices"]), tried.json
        assert any("GET /cm" in each for each in tried.json["lines"])
        assert PASSWORD not in tried.body.decode() and "pw-9f%2F3a" not in tried.body.decode()
        wrong = (
            await home.post("/files/sections/plug/try", asked | {"values": {"base_url": vendor.url, "password": "x"}})
        ).json
        assert wrong["error"] and wrong["devices"] == []
    asked["replay"] = tried.json["recording"]
    again = (await home.post("/files/sections/plug/try", asked)).json
    assert again["error"] is None and again["devices"][0]["id"] == "plug:relay:1"
    assert "rejects the password" not in str((await home.get("/diagnostics/log?level=warning&limit=200")).json)


RECORDING: dict[str, Any] = {
    "kind": "own",
    "settings": {},
    "exchanges": [
        {
            "request": {"method": "GET", "path": "/x", "query": {"key": "***"}},
            "response": {"status": 200, "headers": {"content-type": "application/json"}, "body": '{"t": 21.5}'},
        }
    ],
}


async def test_an_unsaved_text_is_tested_with_a_recording(home: App, file: Path) -> None:
    values = {"city": "Bonn", "api_key": "very-secret-key"}
    asked = {"kind": "fresh", "values": values, "text": OWN, "replay": RECORDING}
    tried = (await home.post("/files/sections/fresh/try", asked)).json
    assert tried["error"] is None and tried["devices"][0]["attributes"]["temperature"]["value"] == 21.5, tried
    assert "very-secret-key" not in str(tried)
    refused = await home.post("/files/sections/fresh/try", asked | {"text": "return {\n  poll = 7\n}"})
    assert (refused.status, refused.json["code"]) == (400, "invalid_file"), refused.json
    refused = await home.post("/files/sections/fresh/try", asked | {"text": "while true do end"})
    assert (
        "2 s of processor time without waiting and was stopped (the limit of a kind in Lua; correct the file"
        in refused.json["error"]
    ), refused.json
    refused = await home.post("/files/sections/fresh/try", asked | {"values": {}})
    assert "city is missing" in refused.json["error"], refused.json
    refused = await home.post("/files/sections/fresh/try", asked | {"replay": {"exchanges": 7}})
    assert (refused.status, refused.json["code"]) == (400, "invalid_value"), refused.json


async def test_an_unsaved_text_replaces_a_damaged_file(home: App, file: Path) -> None:
    (file.parent / "adapters").mkdir(exist_ok=True)
    (file.parent / "adapters" / "fresh.lua").write_bytes(b"\xff")
    values = {"city": "Bonn", "api_key": "very-secret-key"}
    asked = {"kind": "fresh", "values": values, "text": OWN, "replay": RECORDING}
    tried = await home.post("/files/sections/fresh/try", asked)
    assert tried.status == 200 and tried.json["error"] is None, tried.json


async def test_a_recording_that_is_too_large_is_omitted(home: App, file: Path) -> None:
    for body, requests, is_kept in (
        ("x" * 500_000, 5, True),
        ("x" * 500_000, 12, False),
        ("\1" * 100_000, 12, False),
    ):
        large = {
            "request": {"method": "GET", "path": "/large"},
            "response": {"status": 200, "headers": {}, "body": body},
        }
        repeat = f'for _ = 1, {requests} do ctx:http {{ path = "/large" }} end local answer'
        asked = {
            "kind": "fresh",
            "values": {"city": "Bonn", "api_key": "very-secret-key"},
            "text": OWN.replace("local answer", repeat),
            "replay": {**RECORDING, "exchanges": [*RECORDING["exchanges"], large]},
        }
        tried = (await home.post("/files/sections/fresh/try", asked)).json
        assert tried["error"] is None and tried["devices"], tried["error"]
        assert (tried["recording"] is not None) is is_kept, (body[:1], requests)


async def test_one_trial_runs_at_a_time_and_ends_with_its_client(home: App, file: Path) -> None:
    slow = OWN.replace("local answer", "while true do ctx:log('info', 'x') end local answer")
    asked = {"kind": "fresh", "values": {"city": "Bonn"}, "text": slow}
    first = asyncio.create_task(home.post("/files/sections/fresh/try", asked))
    await until(lambda: home.hub.sections._trials._is_running, 20)
    assert (await home.post("/files/sections/other/try", asked)).json["code"] == "busy"
    assert (await first).json["error"]
