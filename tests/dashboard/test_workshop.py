"""The editor: errors in the margin, completion of names, saving without loss, a run with its trace, and the
simulation of the next day."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route, expect

from appliance.adapters.elgato_lights.simulator import LightSimulator
from tests.adapters.lua_kinds.simulators import ShellyTwo, Tasmota
from tests.adapters.mqtt.broker import PASSWORD, USER, OwnBroker, running
from tests.dashboard.conftest import visiting
from tests.dashboard.npm import AXE, script
from tests.fakes.announced import ANNOUNCED, announce
from tests.fakes.app import LIGHT, READER, App, open_app
from tests.fakes.patience import until
from tests.fakes.process import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

PATH = "config/automations/lamp.lua"
LAMP = f"""return {{
  id = "lamp",
  name = "Lamp",
  trigger = {{ type = "interval", every_secs = 3600 }},
  execute = function(ctx)
    ctx:command("{LIGHT}", {{ capability = "power", action = "on" }})
  end,
}}
"""
NEXT_DAY = {
    "lines": [
        {"at": "2026-11-28T09:33:46.473Z", "automation": "lamp", "fired": True, "error": None},
        {"at": "2026-11-28T09:33:46.473Z", "automation": "lamp",
         "command": {"capability": "power", "action": "on", "value": None, "device_id": LIGHT, "status": "ok"}},
        {"at": "2026-11-28T10:33:46.473Z", "automation": "lamp", "fired": False,
         "error": "disabled: the automation is switched off"},
        {"at": "2026-11-28T10:33:46.473Z", "automation": "other", "fired": True, "error": None},
    ],
    "until": "2026-11-29T09:33:46.473Z",
    "is_complete": True,
}  # fmt: skip
HOSTILE = "<img src=x onerror='window.broken=1'>"


def write(root: Path, text: str = LAMP) -> Path:
    file = root / PATH
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


async def type_text(page: Page, text: str) -> None:
    """Replace the text of the editor."""
    await page.locator(".cm-content").click()
    await page.keyboard.press("ControlOrMeta+A")
    await page.keyboard.insert_text(text)


async def test_a_file_is_checked_while_typing_and_saved_if_correct(browser: Browser, tmp_path: Path) -> None:
    file = write(tmp_path)
    async with open_app(root=tmp_path) as app, visiting(browser, app) as visit:
        page = visit.page
        await visit.open(f"#/file/{PATH.replace('/', '%2F')}")
        await expect(page.locator(".cm-content")).to_contain_text("every_secs = 3600")
        await expect(page.get_by_role("button", name="Save")).to_be_disabled()
        await type_text(page, LAMP.replace("every_secs", "every_sec"))
        await expect(page.locator(".cm-lint-marker-error")).to_have_count(1)
        await expect(page.locator("p", has_text="Line 4:")).to_contain_text(["every_sec is", "every_secs is"])
        await page.keyboard.press("ControlOrMeta+S")
        await expect(page.get_by_role("alert")).to_contain_text("every_sec")
        assert file.read_text() == LAMP
        await type_text(page, LAMP.replace("3600", "7200"))
        await expect(page.locator(".cm-lint-marker-error")).to_have_count(0)
        await page.keyboard.press("ControlOrMeta+S")
        await expect(page.get_by_role("status").filter(has_text=re.compile("^Saved"))).to_be_visible()
        assert file.read_text() == LAMP.replace("3600", "7200")
        await page.get_by_role("button", name="Earlier versions").click()
        await page.get_by_role("list").get_by_role("button").first.click()
        await expect(page.locator(".removed")).to_contain_text("3600")
        await expect(page.locator(".added")).to_contain_text("7200")
        await page.get_by_role("button", name="Use this text").click()
        await expect(page.locator(".cm-content")).to_contain_text("every_secs = 3600")


async def test_names_of_the_home_are_completed_and_a_device_is_shown(browser: Browser, tmp_path: Path) -> None:
    write(tmp_path)
    wide = {"viewport": {"width": 1280, "height": 900}}
    async with open_app(root=tmp_path) as app, visiting(browser, app, **wide) as visit:
        page = visit.page
        await app.post(f"/devices/{LIGHT}/name", {"name": HOSTILE})
        await visit.open(f"#/file/{PATH.replace('/', '%2F')}")
        await page.locator(".cm-content").click()
        for way in range(10):  # each transaction restarts the delay
            name = await page.locator(".cm-content").get_by_text(LIGHT).bounding_box()
            if name is not None:  # while the editor draws its lines, the text has no place
                await page.mouse.move(name["x"] + 40 + way, name["y"] + 8, steps=3)
            await page.wait_for_timeout(500)
            if await page.locator(".cm-state").count():
                break
        await expect(page.locator(".cm-state")).to_contain_text(HOSTILE)
        assert await page.evaluate("window.broken") is None
        await page.locator(".cm-content").click()
        await page.keyboard.press("ControlOrMeta+End")
        await page.keyboard.type('local one = { device_id = "elg')
        await expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text(LIGHT)
        await page.wait_for_timeout(200)  # a list that has just opened does not react to keys yet
        await page.keyboard.press("Enter")
        await page.keyboard.type('", attribute = "bri')
        await expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("brightness")
        await page.keyboard.press("Escape")


async def test_only_the_fields_of_a_type_are_completed(browser: Browser, tmp_path: Path) -> None:
    write(tmp_path)
    async with open_app(root=tmp_path) as app, visiting(browser, app) as visit:
        page, offered = visit.page, visit.page.locator(".cm-tooltip-autocomplete")
        await visit.open(f"#/file/{PATH.replace('/', '%2F')}")
        await page.locator(".cm-content").click()
        await page.keyboard.press("ControlOrMeta+End")
        for kind, field in (("wall_clock", "minute"), ("presence", "attribute"), ("time_window", "end")):
            await page.keyboard.insert_text(f' local one = {{ type = "{kind}", ')
            await page.keyboard.type(field[0])
            await expect(offered).to_contain_text(field)
            await expect(offered).not_to_contain_text("above")
        await page.wait_for_timeout(200)  # a list that has just opened does not react to keys yet
        await page.keyboard.press("Enter")
        await expect(page.locator(".cm-content")).to_contain_text('["end"] = ')


async def test_a_selection_is_replaced_without_inline_styles(browser: Browser, tmp_path: Path) -> None:
    write(tmp_path)
    async with open_app(root=tmp_path) as app, visiting(browser, app) as visit:
        page, content = visit.page, visit.page.locator(".cm-content")
        await visit.open(f"#/file/{PATH.replace('/', '%2F')}")
        await content.click()
        for keys in (("Home", "Shift+End"), ("End", "Shift+Home"), ("Home", "Shift+ArrowDown", "Shift+End")):
            await page.keyboard.press("ControlOrMeta+Home")
            for key in keys:
                await page.keyboard.press(key)
            await page.keyboard.type("new")
            await expect(content).to_contain_text("new")
            await expect(content).not_to_contain_text("return {")
            await page.keyboard.press("Shift+Home")
            await page.keyboard.type('"')
            await expect(content).to_contain_text('"new"')
            while not await content.get_by_text("return {").count():
                await page.keyboard.press("ControlOrMeta+Z")


async def test_two_editors_of_one_file_lose_nothing(browser: Browser, tmp_path: Path) -> None:
    file = write(tmp_path)
    async with open_app(root=tmp_path) as app, visiting(browser, app) as visit:
        page = visit.page
        await visit.open(f"#/file/{PATH.replace('/', '%2F')}")
        mine, theirs = LAMP.replace("3600", "1800"), LAMP.replace("3600", "900")
        await type_text(page, mine)
        assert (await app.ask("PUT", f"/files/{PATH}", json={"text": theirs})).status == 200
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("Somebody else has changed this file")).to_be_visible()
        assert file.read_text() == theirs
        await expect(page.locator(".cm-content")).to_contain_text("1800")
        await page.get_by_role("button", name="Save my text").click()
        await until(lambda: file.read_text() == mine, 20)
        await expect(page.get_by_text("Somebody else has changed this file")).to_have_count(0)


async def test_an_automation_is_run_and_its_next_day_simulated(browser: Browser, tmp_path: Path) -> None:
    write(tmp_path)
    async with open_app(root=tmp_path) as app, visiting(browser, app) as visit:
        page = visit.page
        await visit.open(f"#/file/{PATH.replace('/', '%2F')}")
        await page.get_by_role("button", name="Try now").click()
        await page.get_by_role("button", name="Run now").click()
        await expect(page.locator(".runs .trace")).to_contain_text("Power")
        assert (await app.device(LIGHT))["attributes"]["power"] == "on"
        await page.get_by_role("button", name="Next 24 hours").click()
        await page.get_by_label(re.compile("^Events")).fill("what")
        await page.get_by_role("button", name="Look ahead").click()
        await expect(page.get_by_role("alert")).to_contain_text("at device attribute value")
        await page.route("**/simulate", lambda route: route.fulfill(json=NEXT_DAY))
        await page.get_by_role("button", name="Look ahead").click()
        await expect(page.get_by_role("region", name="Next 24 hours").locator("li")).to_have_text(
            [re.compile("It runs$"), "Simulated light, Power: On", re.compile("the automation is switched off$")]
        )
        await page.evaluate(script(AXE))
        found = await page.evaluate("axe.run().then((found) => found.violations)")
        assert [(each["id"], [node["html"][:120] for node in each["nodes"]]) for each in found] == []


async def test_only_an_admins_editor_fetches_the_library(browser: Browser, tmp_path: Path) -> None:
    write(tmp_path)
    async with open_app(root=tmp_path) as app, visiting(browser, app) as visit:
        await visit.open()
        await visit.page.wait_for_timeout(2500)  # all other views are already loaded
        assert library(visit.requests) == 0
        await visit.go(f"file/{PATH.replace('/', '%2F')}")
        await expect(visit.page.locator(".cm-content")).to_be_visible()
        assert library(visit.requests) == 1
    async with open_app(root=tmp_path) as app, visiting(browser, app) as visit:
        await visit.open(f"#/file/{PATH.replace('/', '%2F')}", token=READER.text)
        await expect(visit.page.locator("main")).to_contain_text("Your key does not permit this")
        assert library(visit.requests) == 0 and not asked_for_files(app, visit.requests)


def library(requests: list[str]) -> int:
    """Count the requests for the editor's library."""
    return sum(each.endswith("/codemirror.js") for each in requests)


def asked_for_files(app: App, requests: list[str]) -> list[str]:
    """Return the requests for files of the home."""
    return [each for each in requests if each.startswith(f"{app.url}/files")]


async def test_a_new_file_replaces_no_other(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "automations"
    write(tmp_path)
    async with open_app(root=tmp_path) as app, visiting(browser, app) as visit:
        page = visit.page
        for name in ("desk_light", "desk_light_2"):
            await visit.open("#/new")
            await page.get_by_label("Name").fill("Desk light")
            await page.get_by_role("button", name="Automation", exact=True).click()
            await expect(page.get_by_role("heading", level=1)).to_have_text(f"{name}.lua")
            await type_text(page, LAMP.replace('"lamp"', f'"{name}_at_night"'))
            await page.keyboard.press("ControlOrMeta+S")
            await until((folder / f"{name}.lua").exists, 20)
        assert sorted(each.name for each in folder.iterdir()) == ["desk_light.lua", "desk_light_2.lua", "lamp.lua"]
        assert '"desk_light_at_night"' in (folder / "desk_light.lua").read_text()


RECIPE = """-- Lamp at a time.
--- @field lamp device power: the lamp
local lamp = "elgato_lights:light:9"
--- @field at time: when it goes on
local at = "07:00"
return { id = "wake", name = "Wake", description = "Switches a lamp on, 5..10 minutes early.",
  trigger = { type = "wall_clock", time = at },
  execute = function(ctx) ctx:command(lamp, { capability = "power", action = "on" }) end }
"""


def save_recipe(home: Path, text: str) -> None:
    folder = home / "config" / "recipes"
    folder.mkdir(parents=True)
    (folder / "wake.lua").write_text(text)


async def test_a_recipe_becomes_an_automation(browser: Browser, tmp_path: Path) -> None:
    save_recipe(tmp_path, RECIPE)
    async with open_app(root=tmp_path) as app, visiting(browser, app) as visit:
        page = visit.page
        await visit.open("#/automations")
        await page.get_by_role("link", name="New").click()
        await page.get_by_role("link", name="Wake Switches").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Wake")
        await page.get_by_label("Name").fill("Desk at seven")
        await page.get_by_label("The lamp").select_option("Simulated light")
        await page.get_by_label("When it goes on").fill("06:45")
        await expect(page.get_by_role("status").filter(has_text="Switches a lamp on")).to_have_text(
            re.compile(r"5\.\.10 minutes early\. .*Simulated light.*[^.]\.$")
        )
        await page.get_by_role("button", name="Create").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Desk at seven")
        text = (tmp_path / "config" / "automations" / "desk_at_seven.lua").read_text()
        assert 'local at = "06:45"' in text and f'local lamp = "{LIGHT}"' in text


async def test_a_slow_recipe_and_a_new_automation_are_awaited(browser: Browser, tmp_path: Path) -> None:
    save_recipe(tmp_path, RECIPE)
    async with open_app(root=tmp_path) as app, visiting(browser, app) as visit:
        page, heading = visit.page, visit.page.get_by_role("heading", level=1)
        recipes, home = asyncio.Event(), asyncio.Event()

        async def delay(route: Route) -> None:
            await (recipes if route.request.url.endswith("/recipes") else home).wait()
            await route.continue_()

        await page.route("**/recipes", delay)
        await visit.open("#/new/wake")
        await expect(heading).to_have_text("New")
        await expect(page.locator("main")).to_contain_text("…")
        await expect(page.get_by_role("textbox")).to_have_count(0)
        recipes.set()
        await expect(heading).to_have_text("Wake")
        await page.get_by_label("Name").fill("Desk")
        await page.get_by_label("The lamp").select_option("Simulated light")
        await page.route(re.compile(r"/(overview|automations\?)"), delay)
        async with page.expect_response(re.compile(r"/why\?id=desk$")):
            await page.get_by_role("button", name="Create").click()
        await expect(heading).to_have_text("desk")
        await expect(page.locator("main")).to_contain_text("…")
        home.set()
        await expect(heading).to_have_text("Desk")
        await visit.go("automations/nothing")
        await expect(heading).to_have_text("This automation does not exist.")
        await visit.go("new/walk%20up")
        await expect(heading).to_have_text("There is no recipe walk up.")
        await expect(page.get_by_role("textbox")).to_have_count(0)


async def test_the_warnings_of_a_recipe_are_shown_before_it_is_saved(browser: Browser, tmp_path: Path) -> None:
    weekdays = 'type = "cron", expression = "0 0 7 * * 1-5"'
    save_recipe(tmp_path, RECIPE.replace('type = "wall_clock", time = at', weekdays))
    async with open_app(root=tmp_path) as app, visiting(browser, app) as visit:
        page = visit.page
        await visit.open("#/new/wake")
        await page.get_by_label("The lamp").select_option("Simulated light")
        warning, file = page.locator("main .warning"), tmp_path / "config" / "automations" / "wake.lua"
        await page.get_by_role("button", name="Create", exact=True).click()
        await expect(warning).to_contain_text("SUN")
        await page.get_by_label("When it goes on").fill("06:45")
        await expect(warning).to_have_count(0)
        await page.get_by_role("button", name="Create", exact=True).click()
        await expect(warning).to_contain_text("SUN")
        assert not file.exists()
        await page.get_by_role("button", name="Create anyway").click()
        await expect(page).to_have_url(re.compile(r"#/automations/wake$"))
        assert file.exists()


CONFIG = """# mine
[adapters.plug]
type = "wled"
base_url = "http://127.0.0.1:9"  # fixed
# token = "old-token"

[api] # the rest
bind_address = "127.0.0.1:3000"

[adapters.elgato_lights]
enabled = false
base_url = "http://192.168.1.20:9123"
"""


async def test_an_adapter_is_tested_added_changed_and_removed(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "config" / "default.toml"
    file.parent.mkdir()
    file.write_text(CONFIG)
    opened = open_app(root=tmp_path, file=file, wait_until_ready=False)
    async with LightSimulator() as light, opened as app, visiting(browser, app) as visit:
        page = visit.page
        await visit.open("#/settings/devices")
        await page.get_by_label("Kind").select_option("Elgato light")
        address = page.get_by_label("Address (URL)")
        await address.fill("127.0.0.1:9")
        await page.get_by_role("button", name="Test", exact=True).click()
        await expect(page.get_by_role("status").filter(has_text="127.0.0.1:9")).to_be_visible()
        await address.fill(light.url.removeprefix("http://"))
        await page.get_by_role("button", name="Test", exact=True).click()
        await expect(page.get_by_role("status").filter(has_text="It answers: Simulated light")).to_be_visible()
        assert file.read_text() == CONFIG
        await page.get_by_role("button", name="Add", exact=True).click()
        added = CONFIG.replace("enabled = false", "enabled = true").replace("http://192.168.1.20:9123", light.url)
        await until(lambda: file.read_text() == added, 20)
        await until(lambda: bool(app.hub.registry.find_devices([LIGHT])), 20)
        await page.get_by_role("button", name="Change plug").click()
        await page.get_by_text("More settings").click()
        await page.get_by_label("Poll interval secs").fill("0")
        await page.get_by_role("button", name="Save", exact=True).click()
        assert file.read_text() == added
        await page.get_by_label("Poll interval secs").fill("7")
        await page.get_by_role("button", name="Save", exact=True).click()
        changed = added.replace('"  # fixed\n', '"  # fixed\npoll_interval_secs = 7\n')
        await until(lambda: file.read_text() == changed, 20)
        await expect(page.locator("[aria-busy=true]")).to_have_count(0)  # a busy form is pale
        await page.evaluate(script(AXE))
        found = await page.evaluate("axe.run().then((found) => found.violations.map(({ id }) => id))")
        assert found == []
        await page.get_by_role("link", name="Devices and adapters").click()
        await page.get_by_role("button", name="Delete plug").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        own = changed[changed.index("[adapters.plug]") : changed.index("[api]")]
        await until(lambda: file.read_text() == changed.replace(own, ""), 20)


async def test_a_kind_is_written_tested_and_replayed(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "config" / "adapters").mkdir(parents=True)
    async with Tasmota() as vendor, open_app(root=tmp_path) as app, visiting(browser, app) as visit:
        page = visit.page
        await visit.open("#/new")
        await page.get_by_role("button", name="Adapter kind").click()
        await expect(page.locator(".cm-content")).to_contain_text("poll_interval_secs")
        await type_text(page, KIND)
        await page.get_by_role("button", name="Test", exact=True).click()
        await page.get_by_label(re.compile("^Settings")).fill(f"base_url = {vendor.url}")
        tests = page.get_by_role("region", name="Test")
        await tests.get_by_role("button", name="Test", exact=True).click()
        await expect(tests.get_by_role("status")).to_contain_text("It answers: Plug")
        await type_text(page, KIND.replace("Plug", "Socket"))
        await tests.get_by_role("button", name="Replay").click()
        await expect(tests.get_by_role("status")).to_contain_text("It answers: Socket")
        await tests.get_by_text("Requests and answers").click()
        await expect(tests.locator("pre")).to_contain_text("GET /cm")


KIND = """return {
  name = "Mine",
  settings = { base_url = { type = "string", required = true } },
  poll = function(ctx)
    local status = ctx:http { path = "/cm", query = { cmnd = "Status 0" } }.json
    return { { id = "it", name = "Plug", kind = "Switch", attributes = { power = "on" } } }
  end,
}
"""


SCRATCH = """return {
  id = "window_light",
  name = "Light at the window",
  trigger = {
    type = "device_state_change", device_id = "mqtt:binary_sensor", attribute = "contact", equals = "open",
  },
  execute = function(ctx)
    ctx:command("reading_light", { capability = "power", action = "on" })
    ctx:command("mqtt:climate", {
      capability = "target_temperature", action = "set", value = { value = 17, unit = "°C" },
    })
    ctx:sleep(1)
  end,
}
"""
MISTAKES = {
    "the name of a device": ('ctx:command("reading_light"', 'ctx:command("Light"', "write the id mqtt:light"),
    "an attribute": ('attribute = "contact"', 'attribute = "contakt"', "did you mean contact?"),
    "a method of ctx": ("ctx:sleep(1)", "ctx:slep(1)", "did you mean ctx:sleep?"),
    "the syntax": ("ctx:sleep(1)", "ctx:sleep(1", "')' expected"),
    "a unit": ('unit = "°C"', 'unit = "C"', "unknown unit C; write °C"),
}
RECIPES: dict[str, dict[str, str | bool]] = {
    "Door left open": {"Binary sensor": True},
    "Evening light": {"The lights": "Lights"},
    "Heating schedule": {"The room": "Bedroom"},
    "Low batteries": {},
}


async def test_a_broker_a_shelly_and_automations_are_made_on_the_page(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "config" / "default.toml"
    shutil.copytree(ROOT / "config" / "scripts", file.parent / "scripts")
    file.write_text("")
    async with (
        running(OwnBroker(tmp_path)) as broker,
        broker.client() as announcer,
        ShellyTwo() as shelly,
        open_app(root=tmp_path, file=file, wait_until_ready=False) as app,
        visiting(browser, app) as visit,
    ):
        await announce(announcer)
        page = visit.page
        await visit.open("#/settings/add")
        broker_form = {
            "Host name": "127.0.0.1",
            "Port": str(broker.port),
            "User name": USER,
            "Password (if": PASSWORD,
        }
        await add_section(page, "mqtt", broker_form, "Light")
        await add_section(page, "shelly", {"Address (URL)": shelly.url.removeprefix("http://")}, "Test Name")
        await until(lambda: len(app.hub.registry.list_devices()) > len(ANNOUNCED), 20)
        await visit.go("settings/rooms")
        await page.get_by_placeholder("Name of a new room").fill("Bedroom")
        await page.keyboard.press("Enter")
        await page.get_by_placeholder("Name of a new group").fill("Lights")
        await page.keyboard.press("Enter")
        for name in ("Light", "Switch"):
            await page.get_by_label(f"Choose {name}", exact=True).check()
        await page.get_by_label("Add chosen devices to a group: 2").select_option("Lights")
        await page.get_by_role("button", name="Rename Light", exact=True).click()
        await page.get_by_role("textbox", name="Short id").fill("reading_light")
        await page.keyboard.press("Enter")
        await until(lambda: app.hub.registry.id_of("reading_light") == "mqtt:light", 20)
        groups = (await app.get("/groups")).json
        assert [each["members"] for each in groups] == [["mqtt:light", "mqtt:switch"]]
        for name, fields in RECIPES.items():
            await visit.go("new")
            await page.get_by_role("link", name=name).click()
            for label, value in fields.items():
                field = page.locator("label", has_text=label).locator("select, input").first
                await (field.check() if value is True else field.select_option(str(value)))
            await page.get_by_role("button", name="Create").click()
            await expect(page.locator("h1.title")).to_have_text(name)
        await visit.go("new")
        await page.get_by_label("Name").fill("Window")
        await page.get_by_role("button", name="Automation", exact=True).click()
        for old, wrong, sentence in MISTAKES.values():
            assert old in SCRATCH
            await type_text(page, SCRATCH.replace(old, wrong))
            await expect(page.locator("p.problem, p.warning", has_text=sentence)).to_have_count(1)
            assert not (file.parent / "automations" / "window.lua").exists()
        await type_text(page, SCRATCH)
        await expect(page.locator("p.problem, p.warning")).to_have_count(0)
        await page.keyboard.press("ControlOrMeta+S")
        await expect(page.get_by_role("status").filter(has_text=re.compile("^Saved and active"))).to_be_visible()
        armed = {each.definition.id for each in app.hub.automations.list_views() if each.is_enabled}
        assert armed == {"window_light", "door_left_open", "evening_light", "heating_schedule", "low_batteries"}


async def add_section(page: Page, kind: str, values: dict[str, str], answer: str) -> None:
    """Fill in the form of a kind, test it, and add it."""
    await page.get_by_label("Kind").select_option(kind)
    for label, value in values.items():
        await page.get_by_label(label).first.fill(value)
    await page.get_by_role("button", name="Test", exact=True).click()
    await expect(page.get_by_role("status").filter(has_text=answer)).to_be_visible()
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.get_by_role("status").filter(has_text=re.compile(f"^{kind}: Running"))).to_be_in_viewport()
