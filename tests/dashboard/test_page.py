"""The page in a browser, as people use it. Each test opens a new page, and no page contacts another host."""

from __future__ import annotations

import asyncio
import re
import socket
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, WebSocketRoute, expect

from appliance.adapters.elgato_lights.simulator import SimulatedLight
from appliance.adapters.network_search.search import Found
from appliance.home.events import DeviceEvent, SystemErrorReported
from appliance.home.model import DeviceKind
from tests.dashboard.conftest import Place, open_sheet, tile, visiting
from tests.dashboard.npm import JSQR, script
from tests.fakes import process
from tests.fakes.app import LIGHT, MASTER, READER, TV, App, open_app
from tests.fakes.furnished import ADAPTER, furnish, many, seen, show
from tests.fakes.patience import until

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

PATIENCE_SECS = 20.0
"""Seconds that a busy machine can take for an immediate action."""

SETTINGS = tuple(
    f"settings/{each}" for each in ("devices", "rooms", "keys", "hooks", "backup", "look", "about", "diagnostics")
)
PAGES = (f"device/{LIGHT.replace(':', '%3A')}", f"sheet/{LIGHT.replace(':', '%3A')}", f"device/{ADAPTER}%3Aair")
VIEWS = ("", "automations", "settings", *SETTINGS, *PAGES)


async def test_a_first_visit_asks_for_the_key_and_keeps_it(browser: Browser, shared: App) -> None:
    async with visiting(browser, shared) as visit:
        page = visit.page
        await visit.open(token=None)
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Key", exact=True).fill("wrong")
        await dialog.get_by_role("button").click()
        await expect(dialog).to_contain_text("does not accept")
        await dialog.get_by_label("Key", exact=True).fill(MASTER)
        await dialog.get_by_role("button").click()
        await expect(tile(page, "Simulated light")).to_be_visible()
        await expect(dialog).to_have_count(0)
        assert await page.evaluate("localStorage.lares_token") == MASTER
        await page.reload()
        await expect(tile(page, "Simulated light")).to_be_visible()


async def test_the_token_is_removed_from_the_address_at_once(browser: Browser, shared: App) -> None:
    async with visiting(browser, shared) as visit:
        await visit.open(f"&api={shared.url}/#/settings")
        assert visit.page.url == f"{shared.url}/dashboard/#/settings"
        assert await visit.page.evaluate("history.length") <= 2
        assert await visit.page.evaluate("localStorage.lares_token") == MASTER
        for foreign in (
            "https://elsewhere.example/x",
            "/elsewhere",
            "../other/",
            "//elsewhere.example/",
            "data:1",
        ):
            await visit.page.goto(f"{shared.url}/dashboard/?api={foreign}")
            await expect(visit.page.get_by_role("alert")).to_contain_text(foreign)
            assert visit.page.url == f"{shared.url}/dashboard/"
        assert not [each for each in visit.requests if re.search("elsewhere|other", each.partition("?")[0])]


async def test_a_key_in_a_link_replaces_the_stored_one_if_the_hub_accepts_it(browser: Browser, shared: App) -> None:
    async with visiting(browser, shared) as visit:
        page = visit.page
        await visit.open()
        for link in ("?token=wrong", "#token=wrong"):
            await page.goto(f"{shared.url}/dashboard/{link}")
            await expect(page.get_by_role("alert")).to_contain_text("does not accept")
            await expect(page.locator("main:not(.offline)")).to_be_visible()
            assert await page.evaluate("localStorage.lares_token") == MASTER
            assert page.url == f"{shared.url}/dashboard/"
        await page.evaluate(f"location.hash = '#token={READER.text}'")
        await expect(page.get_by_role("alert")).to_have_count(0)
        async with asyncio.timeout(PATIENCE_SECS):
            while await page.evaluate("localStorage.lares_token") != READER.text:  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0.02)
        assert "token" not in page.url


async def test_a_switch_waits_for_the_vendor_and_shows_its_state(browser: Browser, shared: App) -> None:
    shared.light.lights = [SimulatedLight(temperature=213)]
    async with visiting(browser, shared) as visit:
        await visit.open()
        tapped = tile(visit.page, "Simulated light").get_by_role("switch")
        await expect(tapped).to_have_attribute("aria-checked", "false")
        light = await open_sheet(visit.page, "Simulated light")
        power = light.get_by_role("switch")
        await expect(power).to_have_attribute("aria-checked", "false")
        await power.click()
        await expect(power).to_have_attribute("aria-checked", "true")
        assert shared.light.lights[0].on == 1
        await expect(tapped).to_have_attribute("aria-checked", "true")
        slider = light.get_by_role("slider", name="Brightness")
        await slider.fill("80")
        await expect(light.locator("output").first).to_have_text("80%")
        await until(lambda: shared.light.lights[0].brightness == 80, PATIENCE_SECS)
        await expect(light.locator("[aria-busy]")).to_have_count(0)
        shared.light.lights = [SimulatedLight(on=False, brightness=33, temperature=213)]
        await expect(power).to_have_attribute("aria-checked", "false")
        await expect(slider).to_have_js_property("value", "33")
        assert visit.asked("/overview") == 1


async def test_a_refusal_is_a_sentence_at_the_device_and_the_switch_does_not_move(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        await visit.open()
        tv = tile(visit.page, "Simulated TV - LARES0000002")
        before = await tv.get_by_role("switch").get_attribute("aria-checked") or ""
        await app.tv.unplug()
        await tv.get_by_role("switch").click()
        await expect(tv.get_by_role("alert")).to_contain_text("does not answer")
        sheet = await open_sheet(visit.page, "Simulated TV - LARES0000002")
        await expect(sheet.get_by_role("switch", name="Power")).to_have_attribute("aria-checked", before)
        await visit.page.keyboard.press("Escape")
        await tv.get_by_role("button", name="Dismiss").click()
        await expect(tv.get_by_role("alert")).to_have_count(0)


async def test_rooms_groups_and_names_are_created_changed_and_deleted(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        await visit.open("#/settings/rooms")
        page = visit.page
        await page.get_by_label("Name of a new room").fill("Küche & Bad")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Küche & Bad")).to_be_visible()
        assert (await app.get("/rooms")).json == [{"id": "kuche_bad", "name": "Küche & Bad"}]
        await page.get_by_label("Simulated light", exact=True).select_option("Küche & Bad")
        await until(lambda: app.hub.registry.get_device(LIGHT).room_id == "kuche_bad", PATIENCE_SECS)
        await expect(page.locator("[aria-busy]")).to_have_count(0)
        for name in ("Simulated light", "Simulated TV - LARES0000002"):
            await page.get_by_label(f"Choose {name}").check()
        await page.get_by_label("Move chosen devices: 2").select_option("No room")
        rooms = app.hub.registry.get_device
        await until(lambda: rooms(LIGHT).room_id is None and rooms(TV).room_id is None, PATIENCE_SECS)
        await page.get_by_role("button", name="Rename Küche & Bad").click()
        await expect(page.get_by_role("textbox", name="Rename Küche & Bad")).to_be_focused()
        await page.keyboard.type("Bad")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Bad", exact=True)).to_be_visible()
        await page.get_by_label("Name of a new group").fill("Evening")
        await page.keyboard.press("Enter")
        group = page.get_by_role("group", name="Evening")
        for name in ("Simulated TV - LARES0000002", "Simulated light"):
            await group.get_by_label("Add a device to Evening").select_option(name)
            await expect(group.get_by_text(name)).to_be_visible()
        await group.get_by_role("button", name="Move Simulated light up").click()
        await expect(group.locator(".member span").first).to_have_text("Simulated light")
        assert (await app.get("/groups/evening")).json["members"] == [LIGHT, "roku_tv:tv"]
        await visit.go("")
        await expect(tile(page, "Evening").get_by_role("switch")).to_be_visible()
        sheet = await open_sheet(page, "Simulated light")
        await sheet.get_by_role("link", name="All about this device").click()
        await page.get_by_role("button", name="Rename Simulated light").click()
        await expect(page.get_by_role("textbox", name="Rename Simulated light")).to_be_focused()
        await page.keyboard.type("Desk lamp")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Desk lamp")
        assert (await app.device(LIGHT))["name"] == "Desk lamp"
        await visit.go("settings/rooms")
        for name in ("Evening", "Bad"):
            await page.get_by_role("button", name=f"Delete {name}").click()
            await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
            await expect(page.get_by_role("heading", name=name, exact=True)).to_have_count(0)
        assert (await app.get("/rooms")).json == (await app.get("/groups")).json == []


async def test_a_new_key_is_shown_once_and_its_qr_code_logs_a_phone_in(browser: Browser, shared: App) -> None:
    reader = script(JSQR)
    async with visiting(browser, shared, device_scale_factor=2) as visit:
        page = visit.page
        await visit.open("#/settings/keys")
        await page.get_by_label("Name of a new key").fill("Phone")
        await page.get_by_label("Role").select_option("write")
        await page.locator("section", has_text="Keys").get_by_role("button", name="Create").click()
        dialog = page.get_by_role("dialog", name="Key for Phone")
        secret = await dialog.get_by_label("Key", exact=True).input_value()
        await expect(page.locator("svg.qr")).to_be_visible()
        await expect(dialog).to_contain_text("a phone cannot use the code")
        reported = await read_qr(page, reader)
        assert reported == f"{shared.url}/dashboard/#token={secret}"
        await dialog.get_by_role("button", name="Done").click()
        await expect(dialog).to_have_count(0)
        assert secret not in await page.content()
        async with visiting(browser, shared) as phone:
            await phone.page.goto(reported)
            await expect(tile(phone.page, "Simulated light").get_by_role("switch")).to_be_visible()
            await phone.go("settings/rooms")
            await phone.page.get_by_label("Name of a new room").fill("half a na")
            await page.get_by_role("button", name="Revoke Phone").click()
            await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
            asked = phone.page.get_by_role("dialog")
            await expect(asked).to_contain_text("does not accept")
            await asked.get_by_label("Key", exact=True).fill(MASTER)
            await asked.get_by_role("button").click()
            await expect(asked).to_have_count(0)
            await expect(phone.page.get_by_label("Name of a new room")).to_have_value("half a na")


async def test_the_qr_code_of_a_new_hook_is_an_address_that_calls_it(browser: Browser, shared: App) -> None:
    reader = script(JSQR)
    async with visiting(browser, shared, device_scale_factor=2) as visit:
        page = visit.page
        await visit.open("#/settings/hooks")
        await page.get_by_label("Id of a new hook").fill("bell")
        await page.locator("section", has_text="Hooks").get_by_role("button", name="Create").click()
        dialog = page.get_by_role("dialog", name="Key for bell")
        await expect(dialog).to_contain_text("No automation uses this hook yet.")
        address = await dialog.get_by_label("Address", exact=True).input_value()
        assert address.startswith(f"{shared.url}/hooks/bell?token=lrs_") and await read_qr(page, reader) == address
        await dialog.get_by_role("button", name="Done").click()
        await expect(page.locator("section", has_text="Hooks")).to_contain_text(f"{shared.url}/hooks/bell")
        called = await shared.get(address.removeprefix(shared.url), token=None)
        assert (called.status, called.json["code"]) == (404, "hook_not_found")
        await page.get_by_role("button", name="Revoke bell").click()
        await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        await expect(page.get_by_role("button", name="Revoke bell")).to_have_count(0)
        assert (await shared.get(address.removeprefix(shared.url), token=None)).status == 401


async def test_discovered_devices_are_listed_with_their_sections(browser: Browser) -> None:
    section = '[adapters.wled]\nbase_url = "http://10.0.0.2"\n'
    lamp = Found(kind="wled", name="Desk", address="10.0.0.2:80", serial="aabb", section=section)
    async with open_app(adapters={}, found=[lamp]) as app, visiting(browser, app) as visit:
        await visit.open("#/settings/devices")
        part = visit.page.locator("section", has_text="Devices in the network").last
        await part.get_by_role("button", name="Search").click()
        await expect(part).to_contain_text("wled · 10.0.0.2:80 · aabb")
        await expect(part.get_by_label("Section for Desk")).to_have_value(section)
    async with open_app(adapters={}) as app, visiting(browser, app) as visit:
        await visit.open("#/settings/devices")
        await visit.page.get_by_role("button", name="Search").last.click()
        await expect(visit.page.get_by_text("Nothing found")).to_be_visible()


async def test_the_address_of_an_unknown_section_is_explained(browser: Browser, tmp_path: Path) -> None:
    async with open_app(root=tmp_path, adapters={}) as app, visiting(browser, app) as visit:
        await visit.open("#/settings/adapter:oven")
        await expect(visit.page.locator("main")).to_contain_text("There is no section oven.")


async def test_errors_in_files_are_shown_with_their_lines(browser: Browser, tmp_path: Path) -> None:
    for file, text in (
        ("automations/dusk.lua", "return {\n  id = 'dusk', mod = 1 }"),
        ("adapters/oven.lua", "return {}"),
    ):
        (tmp_path / "config" / file).parent.mkdir(parents=True)
        (tmp_path / "config" / file).write_text(text)
    adapters = '[adapters.oven]\ntype = "oven"\nbase_url = "http://127.0.0.1:9"\n'
    async with (
        open_app(root=tmp_path, adapters=adapters, wait_until_ready=False) as app,
        visiting(browser, app) as visit,
    ):
        page = visit.page
        await visit.open("#/automations")
        await expect(page.locator(".faults li").first).to_have_text(re.compile(r"^config/automations/dusk.lua:1 \S"))
        await visit.go("automations/dusk")
        await expect(page.locator("main")).to_contain_text("it is not loaded: config/automations/dusk.lua:1: ")
        await visit.go("settings/devices")
        await expect(page.locator(".problem")).to_have_text(re.compile(r"^config/adapters/oven.lua:1: "))
        (tmp_path / "config" / "adapters" / "oven.lua").write_text(
            "return { name = 'Oven', poll = function() return {} end }"
        )
        await app.post("/adapters/reload", {})
        await expect(page.locator(".problem")).to_have_count(0)
        (tmp_path / "config" / "adapters" / "oven.lua").write_text("return {")
        await app.post("/adapters/reload", {})
        await expect(page.locator(".problem")).to_contain_text("oven.lua:1: ")


async def read_qr(page: Page, reader: str) -> str:
    """Return the text in the QR code on the page."""
    await page.evaluate(reader.replace("typeof exports === 'object' && typeof module === 'object'", "false"))
    found: str = await page.evaluate(
        """() => {
            const svg = document.querySelector("svg.qr");
            const [, , size] = svg.getAttribute("viewBox").split(" ").map(Number);
            const canvas = Object.assign(document.createElement("canvas"), { width: size * 8, height: size * 8 });
            const context = canvas.getContext("2d");
            context.scale(8, 8);
            context.translate(4, 4);
            for (const path of svg.querySelectorAll("path")) {
                context.fillStyle = path.getAttribute("fill");
                context.fill(new Path2D(path.getAttribute("d")));
            }
            const { data, width, height } = context.getImageData(0, 0, canvas.width, canvas.height);
            return (globalThis.jsQR ?? self.jsQR)(data, width, height).data;
        }"""
    )
    return found


async def test_a_read_key_shows_everything_without_forbidden_buttons(browser: Browser, shared: App) -> None:
    async with visiting(browser, shared) as visit:
        await visit.open(token=READER.text)
        page = visit.page
        await expect(tile(page, "Simulated light")).to_be_visible()
        for view in VIEWS[:-1]:
            if view.partition("/")[2] in ("keys", "hooks", "backup"):
                continue  # without access to this view, the key sees a list instead
            await visit.go(view)
            enabled = await page.locator(
                "main button, main input, main select, dialog button, dialog input"
            ).evaluate_all(
                "all => all.filter((each) => !each.disabled).map((each) => each.ariaLabel || each.innerText)"
            )
            periods = {"Hour", "Day", "Week", "Month", "Year", "Compare"}
            allowed = {
                "Forget the key",
                *periods,
                "Brightness",
                "Warmth",
                "Power",
                "Reload",
                "Close",
                "Colours",
                "Language",
            }
            own = ("Favourite", "Hide", "Search", "Fold", "Copy")  # stored in the browser
            assert {each for each in enabled if not each.startswith(own)} <= allowed, (view, enabled)
        assert visit.asked("/diagnostics") == visit.asked("/auth/keys") == 0


async def test_the_settings_describe_only_what_the_key_can_see(browser: Browser, shared: App) -> None:
    async with visiting(browser, shared) as visit:
        entries = visit.page.locator("main a.entry")
        await visit.open("#/settings")
        await expect(entries.filter(has_text="Find, add, and pair")).to_have_count(1)
        await expect(entries.filter(has_text="Log and live events")).to_have_count(1)
        await visit.page.evaluate("localStorage.clear()")
        await visit.page.goto("about:blank")
        await visit.open("#/settings", token=READER.text)
        await expect(entries.filter(has_text="Live events")).to_have_count(1)
        contents = await entries.locator("small").all_inner_texts()
        assert {"Adapters", "Version", "Live events"} < set(contents)


async def test_the_rule_for_a_typed_id_is_shown_and_the_hub_explains_a_mistake(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        page = visit.page
        await visit.open("#/settings/rooms")
        await page.get_by_role("button", name="Rename Simulated light").click()
        await expect(page.locator("main .hint")).to_have_text("Use a-z, 0-9, and _, and begin with a letter.")
        await page.get_by_role("textbox", name="Short id").fill("Desk Lamp")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("must begin with a letter a-z")
        await visit.go("settings/add")
        name = page.get_by_label("Name of the section")
        await expect(page.locator("label", has=name)).to_contain_text("Use only a-z, 0-9, and _.")
        await name.fill("My broker")
        await page.get_by_label("Host name").fill("127.0.0.1")
        await page.get_by_role("button", name="Add", exact=True).click()
        await expect(page.get_by_role("alert")).to_contain_text("My broker")


HOME = """
[adapters.virtual]
[[adapters.virtual.devices]]
id = "hall"
name = "Hall"
[adapters.virtual.devices.attributes]
power = "off"
contact = "closed"
smoke = false
presence = false
battery = 80
temperature = { value = 20, unit = "°C" }
"""


EVERYTHING = """
[adapters.virtual]
[[adapters.virtual.devices]]
id = "all"
name = "All"
options = { "custom.virtual.mode" = ["eco", "boost"], media_source = ["hdmi1", "tv"] }
[adapters.virtual.devices.attributes]
power = "off"
brightness = 50
color_temperature = { value = 2900, unit = "kelvin" }
color_hs = { hue = 10, saturation = 90 }
color_mode = "white"
effect = "flash"
transition = 1
led_indication = false
muted = false
volume = 95
media_playback = "idle"
media_source = "tv"
media_app = "a"
lock = "locked"
door = "closed"
garage_door = "opening"
cover_position = 40
cover_tilt = 10
energy_total = { value = 3.5, unit = "kWh", period = "total" }
target_temperature = { value = 20, unit = "°C" }
hvac_mode = "heat"
fan_mode = "low"
swing_mode = "on"
preset_mode = "eco"
"custom.virtual.mode" = "eco"
"custom.virtual.count" = 3
"custom.virtual.is_dry" = true
"custom.virtual.word" = "x"
"""


async def test_every_command_of_a_virtual_device_works(browser: Browser) -> None:
    async with open_app(adapters=EVERYTHING) as app, visiting(browser, app) as visit:
        page = visit.page
        device = app.hub.registry.get_device("virtual:all")
        key = (await app.post("/auth/keys", {"label": "w", "role": "write"})).json["key"]
        await visit.open("#/device/virtual%3Aall", token=key)
        await expect(page.get_by_role("heading", level=1)).to_have_text("All")
        assert device.commands is not None and len(device.commands) == len(device.attributes) - 1
        await expect(page.locator(".control")).to_have_count(len(device.commands))

        def is_now(attribute: str, value: Any) -> bool:
            return bool(app.hub.registry.get_device("virtual:all").attributes[attribute] == value)

        async def clicks(name: str, attribute: str, value: Any) -> None:
            await page.get_by_role("button", name=name, exact=True).click()
            await until(lambda: is_now(attribute, value))

        await page.get_by_role("switch", name="All: Power").click()
        await until(lambda: is_now("power", "on"))
        await clicks("Boost", "custom.virtual.mode", "boost")
        await clicks("All: Target +", "target_temperature", {"value": 20.5, "unit": "°C"})
        await clicks("All: Garage: Stop", "garage_door", "stopped")
        await page.get_by_label("All: Word").fill("y")
        await page.keyboard.press("Enter")
        await until(lambda: is_now("custom.virtual.word", "y"))


def shows(app: App, attribute: str, value: Any) -> bool:
    return bool(app.hub.registry.get_device("virtual:hall").attributes[attribute] == value)


async def test_only_an_admin_can_simulate_sensors_of_a_virtual_device(browser: Browser) -> None:
    async with open_app(adapters=HOME) as app, visiting(browser, app) as visit:
        await visit.open("#/device/virtual%3Ahall")
        part = visit.page.get_by_role("region", name="Simulate")
        contact = part.get_by_role("group", name="Hall: Contact")
        await contact.get_by_role("button", name="Open").click()
        await until(lambda: shows(app, "contact", "open"), PATIENCE_SECS)
        for name, attribute in (("Smoke", "smoke"), ("Presence", "presence")):
            await part.get_by_role("switch", name=f"Hall: {name}").click()
            await until(partial(shows, app, attribute, True), PATIENCE_SECS)
        await part.get_by_role("spinbutton", name="Hall: Temperature").fill("21.5")
        await visit.page.keyboard.press("Enter")
        warm = {"value": 21.5, "unit": "°C"}
        await until(lambda: shows(app, "temperature", warm), PATIENCE_SECS)
        await part.get_by_role("textbox", name="Event").fill("double")
        await visit.page.keyboard.press("Enter")
        pressed = DeviceEvent(device_id="virtual:hall", event="double", data={})
        await until(lambda: pressed in app.events, PATIENCE_SECS)
        await expect(part.get_by_label("Hall: Power")).to_have_count(0)
    async with open_app(adapters=HOME) as app, visiting(browser, app) as visit:
        await visit.open("#/device/virtual%3Ahall", token=READER.text)
        await expect(visit.page.get_by_role("heading", level=1)).to_have_text("Hall")
        await expect(visit.page.get_by_role("region", name="Simulate")).to_have_count(0)


async def test_a_tab_that_slept_requests_once_and_shows_missed_changes(browser: Browser, shared: App) -> None:
    shared.light.lights = [SimulatedLight(temperature=213)]
    async with visiting(browser, shared) as visit:
        await visit.page.clock.install()
        await visit.open()
        await expect(tile(visit.page, "Simulated light")).to_be_visible()
        before = len(visit.requests)
        for is_hidden in ("true", "false"):
            await visit.page.evaluate(
                f"""Object.defineProperty(document, "hidden", {{ value: {is_hidden}, configurable: true }});
                    document.dispatchEvent(new Event("visibilitychange"));"""
            )
            if is_hidden == "true":
                assert (await shared.command(LIGHT, "power", "on")).status == 200
                assert (await shared.command(LIGHT, "brightness", "set", 71)).status == 200
                await visit.page.clock.fast_forward(60_000)
        await expect(tile(visit.page, "Simulated light")).to_contain_text("71%")
        await visit.page.wait_for_timeout(300)
        asked = [each for each in visit.requests[before:] if not re.search("/(history|dashboard)/", each)]
        assert asked == [f"{shared.url}/overview"]


async def test_a_killed_hub_is_reported_and_reconnected(browser: Browser, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    process.configure(tmp_path)
    (tmp_path / "config" / "default.toml").write_text(f'[api]\nbind_address = "{address}"\n')
    async with process.running(tmp_path) as hub, visiting(browser, Place(url=hub.url)) as visit:
        page = visit.page
        await visit.open("#/settings/rooms", token=process.KEY)
        await page.get_by_label("Name of a new room").fill("unfinished")
        await page.evaluate("navigator.serviceWorker.ready.then(() => true)")  # the view is still being loaded
        await hub.kill()
        await expect(page.get_by_role("status")).to_contain_text("unreachable since")
        await expect(page.locator("main fieldset")).to_have_js_property("disabled", True)
        async with process.running(tmp_path):
            await expect(page.locator("main:not(.offline)")).to_be_visible(timeout=20_000)
            await expect(page.get_by_role("status")).to_have_text("")
            await expect(page.get_by_label("Name of a new room")).to_have_value("unfinished")
            await page.keyboard.press("Escape")
            await page.get_by_label("Name of a new room").press("Enter")
            await expect(page.get_by_role("heading", name="unfinished")).to_be_visible()
        await expect(page.get_by_role("status")).to_contain_text("unreachable since")
        await page.reload()
        await expect(page.get_by_role("status")).to_contain_text("unreachable since")


async def test_a_stream_that_a_proxy_lost_is_reported_and_opened_again(browser: Browser) -> None:
    """The proxy forwards the hub's responses but not its frames, and does not close the socket."""
    async with open_app() as app, visiting(browser, app) as visit:
        page, is_lost, opened = visit.page, False, 0

        def pass_on(socket: WebSocketRoute) -> None:
            nonlocal opened
            opened += 1
            server = socket.connect_to_server()
            server.on_message(lambda message: None if is_lost else socket.send(message))

        await page.route_web_socket("**/events*", pass_on)
        await page.clock.install()
        await visit.open()
        is_lost = True
        await page.clock.fast_forward(30_000)
        await expect(page.locator("main:not(.offline)")).to_be_visible()
        await page.clock.fast_forward(25_000)
        await expect(page.locator(".banner")).to_contain_text("unreachable since")
        await page.clock.run_for(5_000)
        await until(lambda: opened >= 2)  # the page's first request may time out, because the page's clock is ahead
        await expect(page.locator("main.offline")).to_be_visible()
        is_lost = False
        await page.clock.run_for(60_000)
        await expect(page.locator("main:not(.offline)")).to_be_visible()
        assert (await app.command(LIGHT, "power", "on")).status == 200
        assert (await app.command(LIGHT, "brightness", "set", 72)).status == 200
        await expect(tile(page, "Simulated light")).to_contain_text("72%")


async def test_the_home_is_read_after_the_stream_is_open(browser: Browser, shared: App) -> None:
    """If the page read the home first, it would miss a change between reading the home and opening the stream."""
    async with visiting(browser, shared) as visit:
        await visit.page.add_init_script(
            """window.WebSocket = class extends WebSocket {
                constructor(...all) { super(...all);
                    this.addEventListener("open", () => { window.openedAt = performance.now(); });
                }
            }"""
        )
        await visit.open()
        asked = await visit.page.evaluate("performance.getEntriesByName(new URL('/overview', location))[0].startTime")
        assert 0 < await visit.page.evaluate("openedAt") <= asked


async def test_an_answer_older_than_the_stream_is_requested_again(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        page, sockets, is_late = visit.page, list[WebSocketRoute](), asyncio.Event()

        def keep(socket: WebSocketRoute) -> None:
            sockets.append(socket)
            socket.connect_to_server()

        async def hold(route: Route) -> None:
            answer = await route.fetch()
            is_late.set()
            await until(lambda: len(sockets) == 2, 20)
            await page.wait_for_timeout(200)
            await route.fulfill(response=answer)

        await page.route_web_socket("**/events*", keep)
        await visit.open()
        await page.route("**/overview", hold, times=1)
        app.hub.bus.publish(SystemErrorReported(message="look again"))
        await is_late.wait()
        await sockets[0].close()
        assert (await app.command(LIGHT, "power", "on")).status == 200
        assert (await app.command(LIGHT, "brightness", "set", 73)).status == 200
        await expect(tile(page, "Simulated light")).to_contain_text("73%")


async def test_a_page_reloads_with_the_next_version_of_its_hub(browser: Browser) -> None:
    async def upgrade(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(response=answer, json={**await answer.json(), "version": "next"})

    async with open_app() as app, visiting(browser, app) as visit:
        await visit.open("#/settings/rooms")
        await visit.page.route("**/overview", upgrade)
        async with visit.page.expect_navigation():
            app.hub.bus.publish(SystemErrorReported(message="look again"))
        await expect(visit.page.locator("main.settings:not(.offline)")).to_be_visible()


async def test_a_view_that_fails_to_load_is_requested_until_it_loads(browser: Browser, shared: App) -> None:
    async with visiting(browser, shared, service_workers="block") as visit:
        await visit.page.route("**/settings.js", lambda route: route.abort())
        await visit.open("#/")
        await visit.page.get_by_role("link", name="Settings").click()
        await expect(visit.page.get_by_role("alert")).to_contain_text("does not answer")
        await expect(visit.page.locator("main.home")).to_be_visible()
        await visit.page.unroute("**/settings.js")
        await expect(visit.page.locator("main.settings")).to_be_visible()
        await expect(visit.page.get_by_role("alert")).to_have_count(0)


async def test_the_switch_of_a_room_acts_on_lights_and_asks_before_other_devices(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        await app.post("/rooms", {"id": "den", "name": "Den"})
        for device_id in (LIGHT, TV):
            await app.post(f"/devices/{device_id}/room", {"room_id": "den"})
            await app.command(device_id, "power", "off")
        await visit.open()
        page = visit.page
        switch = page.locator("section", has=page.get_by_role("heading", name="Den")).get_by_role("switch").first
        on, off = ("on", "off")
        for answer, expected in (
            ("Cancel", (on, off)),
            ("Off", (off, off)),
            ("On", (on, on)),
            ("Cancel", (off, on)),
            ("Cancel", (on, on)),
        ):
            await switch.click()
            dialog = page.get_by_role("dialog")
            await expect(dialog).to_contain_text("Simulated TV")
            await dialog.get_by_role("button", name=answer, exact=True).click()
            await expect(page.locator("[aria-busy]")).to_have_count(0)
            shown = [(await app.device(each))["attributes"]["power"] for each in (LIGHT, TV)]
            assert tuple(shown) == expected
            await expect(switch).to_have_attribute("aria-checked", "true" if expected[0] == on else "false")
            await expect(page.locator(".outcomes")).to_have_count(0)
        assert not [each for each in visit.requests if each.endswith("/rooms/den/command")]


async def test_a_reader_that_lagged_fetches_everything_again(browser: Browser) -> None:
    async with open_app(event_capacity=10) as app, visiting(browser, app) as visit:
        await visit.open()
        await expect(tile(visit.page, "Simulated light")).to_be_visible()
        before = visit.asked("/overview")
        for count in range(200):
            app.hub.bus.publish(SystemErrorReported(message=f"number {count}"))
        await visit.page.wait_for_function(
            "() => performance.getEntriesByName(new URL('/overview', location)).length > 1"
        )
        assert before < visit.asked("/overview") <= before + 2
        await visit.go("settings/diagnostics")
        await expect(visit.page.get_by_text("subscriber lagged")).to_be_visible()


HOSTILE = (
    "<img src=x onerror='window.broken=1'>",
    "<script>window.broken=1</script>",
    "</strong><svg onload=window.broken=1>",
    "javascript:window.broken=1",
    "{{constructor.constructor('window.broken=1')()}}",
    "${window.broken=1}",
    '"><b onmouseover=window.broken=1 ',
    "&lt;i&gt; &amp; {name}",
    "\u202eright to left",
)


async def test_hostile_names_and_errors_are_text(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        for at, text in enumerate(HOSTILE):
            show(app.hub.registry, seen(f"evil{at}", text, DeviceKind.SENSOR, {"custom.shown.note": text}))
            await app.post("/rooms", {"id": text, "name": text})
            await app.post("/groups", {"id": text, "name": text, "members": [f"{ADAPTER}:evil{at}"]})
        await visit.open()
        for view in ("", "settings/rooms", f"device/{ADAPTER}%3Aevil0", "settings/diagnostics"):
            await visit.go(view)
            if view.endswith("diagnostics"):
                for text in HOSTILE:
                    app.hub.bus.publish(SystemErrorReported(message=text))
            named = HOSTILE[:-1] if view.endswith("rooms") else HOSTILE  # all attributes except `state`
            for text in HOSTILE[:1] if view.startswith("device") else named:
                shown = text.split("\u202e")[-1].strip()
                await expect(visit.page.locator("main"), view).to_contain_text(shown, use_inner_text=True)
            assert await visit.page.evaluate("window.broken") is None
            assert await visit.page.locator("main img, main script, main b, main i").count() == 0


async def test_a_failing_part_does_not_affect_the_others(browser: Browser) -> None:
    async def break_lamp(route: Route) -> None:
        answer = await route.fetch()
        overview = await answer.json()
        for device in overview["devices"]:
            if device["id"] == LIGHT:
                device["attributes"] = None
        await route.fulfill(response=answer, json=overview)

    async with open_app() as app, visiting(browser, app) as visit:
        page = visit.page
        for id_, members in (("lit", [LIGHT]), ("watched", [TV])):
            await app.post("/groups", {"id": id_, "name": id_, "members": members})
        await page.route("**/overview", break_lamp)
        await visit.open()
        await expect(tile(page, "Simulated TV - LARES0000002")).to_be_visible()
        await expect(tile(page, "watched")).to_be_visible()
        await expect(page.get_by_text("This part cannot be shown.")).to_have_count(2)  # the lamp and its group
        assert visit.faults
        await app.command(LIGHT, "power", "on")
        await expect(page.get_by_text("This part cannot be shown.")).to_have_count(0)
        await expect(tile(page, "Simulated light")).to_be_visible()
        visit.faults.clear()


async def test_no_view_is_wider_than_the_smallest_window(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app, viewport={"width": 320, "height": 700}) as visit:
        await furnish(app)
        notes = {"custom.shown.note": "x" * 300, "custom.shown.parts": {"all": [1, {"deep": None}]}}
        show(app.hub.registry, seen("long", "W" * 200, DeviceKind.SENSOR, notes))
        await visit.open()
        for view in VIEWS:
            await visit.go(view)
            await visit.page.wait_for_timeout(100)
            assert await visit.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, view
            small = await visit.page.evaluate(
                """() => [...document.querySelectorAll("main button, main select, nav a")]
                    .filter((each) => each.getBoundingClientRect().height < 32).map((each) => each.outerHTML)"""
            )
            assert small == [], view
            assert "[object" not in await visit.page.inner_text("main"), view


@pytest.mark.parametrize(("zone", "count"), [("America/New_York", 1), ("Etc/UTC", 0)])
async def test_the_page_names_the_zone_of_the_home_if_the_browser_has_another_time(
    browser: Browser, zone: str, count: int
) -> None:
    async with open_app() as app, visiting(browser, app, timezone_id=zone) as visit:
        await visit.open("#/automations")
        await expect(visit.page.get_by_role("heading", level=1)).to_have_text("Automations")
        await expect(visit.page.get_by_text("automations use UTC")).to_have_count(count)


async def test_two_hundred_devices_and_a_flood_of_events_draw_once_per_frame(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        lamps = many(200)
        show(app.hub.registry, *lamps)
        await visit.open()
        await expect(visit.page.locator(".columns article.tile")).to_have_count(202)
        await visit.page.evaluate(
            """() => {
                window.frames_ = 0; window.updates = 0;
                const count = () => { window.frames_ += 1; requestAnimationFrame(count); };
                requestAnimationFrame(count);
                const all = { subtree: true, childList: true, attributes: true, characterData: true };
                new MutationObserver(() => { window.updates += 1; }).observe(document.body, all);
            }"""
        )
        session = await visit.context.new_cdp_session(visit.page)
        sizes = []
        for count in (2_000, 10_000, 0, 0, 0, 0, 0, 0):
            for at in range(count):
                app.hub.registry.update_attributes(
                    ADAPTER, f"{ADAPTER}:lamp_{at % 200:03}", {"power": "on", "brightness": at * 7 % 101}
                )
                if at % 50 == 0:
                    await visit.page.wait_for_timeout(1)
            await visit.page.wait_for_timeout(300)
            await session.send("HeapProfiler.collectGarbage")
            sizes.append((await session.send("Runtime.getHeapUsage"))["usedSize"])
        frames, updates = await visit.page.evaluate("[window.frames_, window.updates]")
        assert 0 < updates <= frames + 2
        assert min(sizes[1:]) < sizes[0] * 1.2, sizes
