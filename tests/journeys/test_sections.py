"""The configuration file changes. Adapter sections start, stop, and change while the hub runs. Changes of other
keys are reported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from appliance.adapters.elgato_lights.simulator import LightSimulator
from tests.adapters.mqtt.broker import PASSWORD, USER, Broker
from tests.cli.commands import LOOPBACK
from tests.fakes.app import READER, App, open_app
from tests.fakes.lua import write

ON = {"capability": "power", "action": "on"}

VIRTUAL = '[adapters.virtual]\ndevices = [{ id = "a", attributes = { power = "off" } }]\n'
OTHER = '[adapters.other]\ntype = "virtual"\ndevices = [{ id = "b", attributes = { power = "off" } }]\n'
KIND = """
return {
  name = "Mine",
  settings = { word = { type = "string", required = true } },
  poll = function(ctx)
    return { { id = "x", kind = "Sensor", attributes = { ["custom.mine.word"] = ctx.settings.word } } }
  end,
}
"""
SILENT = """
return {
  name = "Silent",
  settings = { word = { type = "string" } },
  hook = function(ctx, request) return {} end,
}
"""
MINE = '[adapters.mine]\nbase_url = "http://127.0.0.1:9"\nword = "first"\n'


class Home:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / "config" / "default.toml"
        self.app: App

    def save(self, *parts: str) -> None:
        write(self.root, {"default.toml": LOOPBACK + "".join(parts)})

    async def reload(self) -> Any:
        """Reload the adapters, and return the response."""
        answer = await self.app.post("/adapters/reload")
        assert answer.status == 200
        return answer.json

    async def states(self) -> Mapping[str, str]:
        """Return the state of each device."""
        return {each["id"]: each["attributes"]["state"] for each in (await self.app.get("/devices")).json}

    async def has(self, *ids: str) -> None:
        for _ in range(400):
            if (found := await self.states()) == dict.fromkeys(ids, "online"):
                return
            await asyncio.sleep(0.01)
        raise AssertionError(found)

    async def notes(self) -> list[str]:
        """Return the status messages about the configuration. Any key can read these messages in the overview."""
        notes: list[str] = (await self.app.get("/diagnostics/status")).json["config"]
        assert (await self.app.get("/overview", token=READER.text)).json["config"] == notes
        return notes


@pytest_asyncio.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    """Run a home with one virtual device."""
    home = Home(tmp_path)
    home.save(VIRTUAL)
    (tmp_path / "data").mkdir()
    async with open_app(file=home.file, data_dir=tmp_path / "data") as home.app:
        yield home


async def test_sections_start_stop_and_change_without_a_restart(home: Home) -> None:
    app = home.app
    await home.has("virtual:a")
    assert await home.notes() == [] and "sections" not in await home.reload()
    home.save(VIRTUAL, OTHER)
    [note] = await home.notes()
    assert note.startswith(f"{home.file} was changed at ") and note.endswith(
        "; run `lares reload` to apply [adapters.other]"
    )
    assert (await app.get("/why?id=virtual:a")).json["summary"][-1] == note
    done = await home.reload()
    assert (done["status"], done["errors"], done["sections"]) == ("ok", [], {"other": "started"})
    assert (await app.get("/ready")).status == 200
    await home.has("other:b", "virtual:a")
    assert (await app.post("/devices/other:b/command", ON)).status == 200
    assert [each["name"] for each in (await app.get("/adapters")).json] == ["other", "virtual"]
    assert await home.notes() == []
    await app.post("/devices/other:b/alias", {"alias": "b"})
    home.save(VIRTUAL.replace('id = "a"', 'id = "c"'))
    assert (await home.reload())["sections"] == {"other": "stopped", "virtual": "replaced"}
    await home.has("virtual:c")
    assert (await app.get("/adapters/other")).status == 404
    assert (await app.post("/adapters/other/operations/observe", {})).status == 404
    home.save(OTHER, OTHER.replace("other", "third").replace('id = "b"', 'id = "d"'))
    async with app.stream() as frames:
        assert (await home.reload())["sections"] == {"other": "started", "third": "started", "virtual": "stopped"}
        assert "virtual:c" in [each.get("id") for each in await app.received(frames)], "device.removed"
    await home.has("other:b", "third:d")
    assert (await app.device("b"))["id"] == "other:b", "it keeps its place"


async def test_a_disabled_section_keeps_the_values_of_its_devices(home: Home) -> None:
    lamp = "[adapters.elgato_lights]\npoll_interval_secs = 1\n"
    async with LightSimulator() as light:
        lamp += f'base_url = "{light.url}"\n'
        home.save(lamp)
        await home.reload()
        await home.has("elgato_lights:light:0")
        bright = {"capability": "brightness", "action": "set", "value": 37}
        assert (await home.app.post("/devices/elgato_lights:light:0/command", bright)).status == 200
        home.save(lamp, "enabled = false\n")
        async with home.app.stream() as frames:
            assert (await home.reload())["sections"] == {"elgato_lights": "stopped"}
            assert "device.removed" in {each["type"] for each in await home.app.received(frames)}
        assert await home.states() == {}
    home.save(lamp)
    async with home.app.stream() as frames:
        assert (await home.reload())["sections"] == {"elgato_lights": "started"}
        [shown] = [each for each in await home.app.received(frames) if each["type"] == "device.state_changed"]
    assert (await home.app.device("elgato_lights:light:0"))["attributes"] == shown["state"]
    assert (shown["state"]["state"], shown["state"]["brightness"]) == ("offline", 37)


async def test_a_section_of_another_kind_takes_over_the_name(home: Home, tmp_path: Path) -> None:
    async with LightSimulator() as light:
        home.save('[adapters.virtual]\ntype = "virtual"\nenabled = false\n[adapters.lamp]\ntype = "virtual"\n')
        await home.reload()
        home.save(f'[adapters.lamp]\ntype = "elgato_lights"\nbase_url = "{light.url}"\npoll_interval_secs = 1\n')
        assert (await home.reload())["sections"] == {"lamp": "replaced"}
        await home.has("lamp:light:0")
        home.save(f'[adapters.lamp]\ntype = "elgato_lights"\nbase_url = "{light.url}"\npoll_interval_secs = 2\n')
        async with home.app.stream() as frames:
            await home.reload()
            await home.has("lamp:light:0")
            assert "device.removed" not in {each["type"] for each in await home.app.received(frames)}
        assert (await home.app.post("/devices/lamp:light:0/command", ON)).status == 200


async def test_a_section_of_another_kind_in_lua_shows_no_values_of_the_old_device(home: Home) -> None:
    write(home.root, {"adapters/mine.lua": KIND, "adapters/silent.lua": SILENT})
    home.save(VIRTUAL, MINE)
    await home.reload()
    await home.has("virtual:a", "mine:x")
    home.save(VIRTUAL, '[adapters.mine]\ntype = "silent"\nbase_url = "http://127.0.0.1:9"\n')
    assert (await home.reload())["sections"] == {"mine": "replaced"}
    assert (await home.app.get("/devices/mine:x")).status == 404
    home.save(VIRTUAL, MINE)
    await home.reload()
    await home.has("virtual:a", "mine:x")


async def test_a_section_of_another_kind_deletes_no_values(home: Home) -> None:
    app = home.app
    await home.has("virtual:a")
    assert (await app.post("/devices/virtual:a/command", ON)).status == 200
    assert (await app.post("/rooms", {"id": "hall", "name": "Hall"})).status == 200
    assert (await app.post("/devices/virtual:a/room", {"room_id": "hall"})).status == 200
    home.save('[adapters.virtual]\ntype = "roku_tv"\nip_address = "127.0.0.1"\nport = 9\n')
    assert (await home.reload())["sections"] == {"virtual": "replaced"}
    assert (await app.get("/devices/virtual:a")).status == 404
    home.save(VIRTUAL)
    await home.reload()
    await home.has("virtual:a")
    device = await app.device("virtual:a")
    assert (device["attributes"]["power"], device["room_id"]) == ("on", "hall")


@pytest.mark.parametrize("file", [KIND, SILENT], ids=["poll", "no poll"])
async def test_a_restart_with_another_kind_neither_shows_nor_deletes_old_values(tmp_path: Path, file: str) -> None:
    home, data = Home(tmp_path), tmp_path / "data"
    data.mkdir()
    write(tmp_path, {"adapters/mine.lua": file})
    home.save(VIRTUAL)
    async with open_app(file=home.file, data_dir=data) as home.app:
        await home.has("virtual:a")
        assert (await home.app.post("/devices/virtual:a/command", ON)).status == 200
    home.save(MINE.replace("mine]", 'virtual]\ntype = "mine"'))
    async with open_app(file=home.file, data_dir=data) as home.app:
        assert (await home.app.get("/devices/virtual:a")).status == 404
        await home.has(*(["virtual:x"] if file == KIND else []))
        assert (await home.app.get("/devices/virtual:a")).status == 404
    home.save(VIRTUAL)
    async with open_app(file=home.file, data_dir=data) as home.app:
        await home.has("virtual:a")
        assert (await home.app.device("virtual:a"))["attributes"]["power"] == "on"


async def test_sections_of_kinds_in_lua_start_with_the_first_of_them(home: Home) -> None:
    write(home.root, {"adapters/mine.lua": KIND})
    home.save(VIRTUAL, MINE)
    done = await home.reload()
    assert (done["status"], done["loaded_count"], done["sections"]) == ("ok", 1, {"mine": "started"}), done
    await home.has("mine:x", "virtual:a")
    home.save(VIRTUAL, MINE.replace("first", "second"))
    assert (await home.reload())["sections"] == {"mine": "replaced"}
    for _ in range(400):
        if (await home.app.device("mine:x"))["attributes"]["custom.mine.word"] == "second":
            break
        await asyncio.sleep(0.01)
    home.save(VIRTUAL, MINE.replace("word", "werd"))
    refused = await home.reload()
    assert refused["status"] == "error" and "sections" not in refused
    assert any(each["file"] == str(home.file) and "did you mean" in each["message"] for each in refused["errors"])
    await home.has("mine:x", "virtual:a")


WRONG = {
    "no TOML": "[adapters.virtual\n",
    "an unknown key": VIRTUAL + "devises = []\n",
    "an unknown kind": VIRTUAL + '[adapters.x]\ntype = "nothing"\n',
    "another section": VIRTUAL + "[api]\nmax_conections = 3\n",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=[*WRONG])
async def test_a_file_with_errors_changes_nothing_and_each_error_has_its_line(home: Home, text: str) -> None:
    write(home.root, {"default.toml": text + OTHER})
    done = await home.reload()
    assert done["status"] == "error" and done["errors"][0]["file"] == str(home.file) and done["errors"][0]["line"]
    await home.has("virtual:a")
    [note] = await home.notes()
    assert "has faults, so the hub ignores the change; run `lares check`" in note


async def test_keys_that_wait_for_the_next_start_are_listed_until_then(home: Home) -> None:
    more = '[locale]\ntimezone = "Europe/Berlin"\n[automations.runner]\nbrake_runs = 5\n'
    home.save(VIRTUAL, more, "[auth]\nmaster_key = 'a-good-and-long-master-key'\n")
    keys = ["auth.master_key", "locale.timezone", "automations.runner.brake_runs"]
    for _ in range(2):
        done = await home.reload()
        assert done["status"] == "ok" and done["next_start"] == keys
        assert await home.notes() == [f"restart the hub to apply changed settings in {home.file}: {', '.join(keys)}"]
    home.save(VIRTUAL)
    assert "next_start" not in await home.reload() and await home.notes() == []
    home.save(VIRTUAL, "# a comment\n")
    assert await home.notes() == []


async def test_a_save_over_http_applies_the_sections(home: Home) -> None:
    text = home.file.read_text() + OTHER
    saved = await home.app.ask("PUT", "/files/config/default.toml", json={"text": text})
    assert saved.status == 200 and saved.json["warnings"] == [], saved.json
    await home.has("other:b", "virtual:a")
    text += '[locale]\ntimezone = "Europe/Berlin"\n'
    saved = await home.app.ask("PUT", "/files/config/default.toml", json={"text": text})
    [warning] = saved.json["warnings"]
    assert warning["message"] == "locale.timezone takes effect after a restart of the hub"
    assert text.splitlines()[warning["line"] - 1].startswith("timezone")


async def test_a_section_of_mqtt_starts_and_stops_publishing_the_home(home: Home, broker: Broker) -> None:
    section = (
        f'[adapters.mqtt]\nhost = "127.0.0.1"\nport = {broker.port}\nusername = "{USER}"\npassword = "{PASSWORD}"\n'
        'hub_id = "cellar"\n'
    )
    home.save(VIRTUAL, section, "publish = true\n")
    assert (await home.reload())["sections"] == {"mqtt": "started"}
    await home.app.post("/devices/virtual:a/alias", {"alias": "lamp"})
    states: asyncio.Queue[bytes] = asyncio.Queue()
    async with broker.client() as client:
        await client.subscribe("lares/cellar/devices/+/state", qos=1)

        async def listen() -> None:
            async for message in client.messages:
                states.put_nowait(bytes(message.payload))

        listening = asyncio.create_task(listen())
        async with asyncio.timeout(20):
            assert b'"power":"off"' in await states.get()
            await client.publish("lares/cellar/devices/lamp/set", '{"capability": "power", "action": "on"}', qos=1)
            while b'"power":"on"' not in await states.get():
                pass
            home.save(VIRTUAL, section)
            assert (await home.reload())["sections"] == {"mqtt": "replaced"}
            while await states.get():
                pass  # the report remains until the change is reverted
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    home.save(VIRTUAL)
    assert (await home.reload())["sections"] == {"mqtt": "stopped"}
    await home.has("virtual:a")
