"""The page in daily use: devices of all MQTT components, a hundred devices, running automations, a wall display,
and languages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from appliance.home.model import DeviceKind
from appliance.home.values import Value
from tests.dashboard.conftest import open_sheet, tile, visiting
from tests.dashboard.homes import announced_home, large
from tests.fakes.announced import ANNOUNCED
from tests.fakes.app import LIGHT, READER, App, open_app
from tests.fakes.furnished import POWER, furnish, seen, show, spec
from tests.fakes.patience import until

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


Way = Callable[[Locator], Any]


def press(name: str) -> Way:
    return lambda place: place.get_by_role("button", name=name).click()


def switch(name: str | None = None) -> Way:
    return lambda place: place.get_by_role("switch", name=name).click()


def slide(name: str, value: str) -> Way:
    return lambda place: place.get_by_role("slider", name=name).first.fill(value)


def enter(name: str, text: str) -> Way:
    async def way(place: Locator) -> None:
        await place.get_by_label(name).fill(text)
        await place.get_by_role("button", name=re.compile("Set|Send")).click()

    return way


COMMANDED: tuple[tuple[str, Way, str, str], ...] = (
    ("button", press("Press"), "set", "PRESS"),
    ("climate", press("Climate: Target +"), "t", "22"),
    ("climate", press("Cool"), "m", "cool"),
    ("climate", press("Eco"), "p", "eco"),
    ("cover", press("Cover: Position: Open"), "set", "OPEN"),
    ("cover", press("Cover: Position: Stop"), "set", "STOP"),
    ("cover", slide("Cover: Position", "70"), "sp", "70"),
    ("fan", switch("Fan: Oscillation"), "o", "oscillate_off"),
    ("fan", press("Reverse"), "d", "reverse"),
    ("fan", slide("Fan: Speed", "60"), "p", "60"),
    ("humidifier", slide("Humidifier: Target humidity", "60"), "h", "60"),
    ("humidifier", press("Boost"), "m", "boost"),
    ("lawn_mower", press("Lawn mower: Lawn mower: Dock"), "d", "dock"),
    ("light", slide("Light: Colour", "120"), "set", '"color":{"x":'),
    ("light", press("Rainbow"), "set", "rainbow"),
    ("notify", enter("Notify: Notify", "Dinner"), "set", "Dinner"),
    ("number", slide("Number: Number", "30"), "set", "30"),
    ("scene", press("Press"), "set", "ON"),
    ("select", press("B"), "set", "b"),
    ("siren", press("Bell"), "set", "bell"),
    ("switch", switch(), "set", "OFF"),
    ("text", enter("Text: Text", "bye"), "set", "bye"),
    ("update", press("Install"), "set", "go"),
    ("vacuum", press("Vacuum: Vacuum: Return to base"), "set", "return_to_base"),
    ("vacuum", press("Max"), "f", "max"),
    ("valve", slide("Valve: Valve", "10"), "set", "10"),
    ("valve", press("Valve: Valve: Stop"), "set", "STOP"),
    ("water_heater", press("Performance"), "m", "performance"),
)
"""Component, action of a person, topic, and a part of the expected message."""

ASKED_FIRST = {"alarm_control_panel", "lock"}
PICTURED = ("camera", "image")
SHOWN = {"binary_sensor": "Binary sensor: open", "device_tracker": "Device tracker: present", "sensor": "21.3°C"}


async def test_every_component_is_in_one_of_the_tables() -> None:
    assert {each[0] for each in COMMANDED} | ASKED_FIRST | SHOWN.keys() | {*PICTURED} == ANNOUNCED.keys()


async def received(messages: Any, topic: str, part: str) -> None:
    """Wait for the message."""
    async with asyncio.timeout(20):
        async for message in messages:
            if message.topic.value == topic and part in message.payload.decode():
                return


async def test_every_component_has_a_sheet_with_its_own_controls(browser: Browser, tmp_path: Path) -> None:
    async with announced_home(tmp_path) as (app, client), visiting(browser, app) as visit:
        await visit.open()
        messages = aiter(client.messages)
        for component, words in SHOWN.items():
            reading = visit.page.locator("a.reading", has_text=words)
            await expect(reading).to_have_attribute("href", f"#/sheet/mqtt%3A{component}")
        for component, way, topic, part in COMMANDED:
            await visit.go(f"sheet/mqtt%3A{component}")
            place = visit.page.get_by_role("dialog")
            await expect(place).to_contain_text(name_of(component))
            await expect(place.locator("[aria-busy]")).to_have_count(0)
            await way(place)
            await received(messages, f"home/{component}/{topic}", part)
            for at, state in ANNOUNCED[component][
                1
            ].items():  # repeat the state, so that no command waits for a report
                await client.publish(f"home/{component}/{at}", state, qos=1)


def name_of(component: str) -> str:
    return component.replace("_", " ").capitalize()


async def test_a_lock_asks_before_it_opens_and_shows_only_possible_actions(browser: Browser, tmp_path: Path) -> None:
    async with announced_home(tmp_path) as (app, client), visiting(browser, app) as visit:
        page, messages = visit.page, aiter(client.messages)
        await visit.open()
        lock = tile(page, "Lock")
        await expect(lock).to_contain_text("Locked")
        await lock.get_by_role("button", name="Lock: Unlock").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("Unlock: Lock?")
        await dialog.get_by_role("button", name="Unlock").click()
        await dialog.get_by_label("Code").fill("1234")
        await dialog.get_by_role("button", name="Unlock").click()
        await received(messages, "home/lock/set", "UNLOCK 1234")
        await client.publish("home/lock/s", "UNLOCKED", qos=1)
        await expect(lock).to_contain_text("Unlocked")
        await lock.get_by_role("button", name="Lock: Lock").click()
        await page.get_by_role("dialog").get_by_label("Code").fill("1234")
        await page.keyboard.press("Enter")
        await received(messages, "home/lock/set", "LOCK 1234")
        await client.publish("home/lock/s", "LOCKED", qos=1)
        await visit.go("device/mqtt%3Aalarm_control_panel")
        alarm = page.locator("main")
        armed = alarm.get_by_role("button", name="Armed home")
        await expect(armed).to_have_attribute("aria-pressed", "true")
        await alarm.get_by_role("button", name="Disarmed").click()
        await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await alarm.get_by_role("button", name="Disarmed").click()
        await page.get_by_role("dialog").get_by_label("Code").fill("99")
        await page.keyboard.press("Enter")
        await received(messages, "home/alarm_control_panel/set", "DISARM/99")
        await client.publish("home/alarm_control_panel/s", "disarmed", qos=1)
        await expect(armed).to_have_attribute("aria-pressed", "false")


async def test_an_unknown_state_looks_and_sounds_unlike_off(browser: Browser, shared: App) -> None:
    commands = (POWER, spec("brightness"))
    async with visiting(browser, shared) as visit:
        show(shared.hub.registry, seen("odd", "Odd", DeviceKind.LIGHT, {"brightness": None}, commands))
        await visit.open()
        odd = tile(visit.page, "Odd")
        await expect(odd).to_contain_text("Unknown")
        await expect(odd.get_by_role("button", name="Odd: Power, Unknown")).to_be_enabled()
        sheet = await open_sheet(visit.page, "Odd")
        await expect(sheet.get_by_role("button", name="Power, Unknown")).to_be_enabled()
        await expect(sheet.get_by_role("switch")).to_have_count(0)
        await expect(sheet.get_by_role("slider")).to_have_attribute("aria-valuetext", "Unknown")
        known: dict[str, Value] = {"power": "off", "brightness": 0}
        show(shared.hub.registry, seen("odd", "Odd", DeviceKind.LIGHT, known, commands))
        power = sheet.get_by_role("switch", name="Odd: Power", exact=True)
        await expect(power).to_have_attribute("aria-checked", "false")
        await expect(sheet.get_by_role("slider")).to_have_attribute("aria-valuetext", "0%")


async def test_an_unreachable_device_is_marked_and_cannot_be_commanded(browser: Browser, tmp_path: Path) -> None:
    async with announced_home(tmp_path) as (app, client), visiting(browser, app) as visit:
        await visit.open()
        plug = tile(visit.page, "Switch")
        await expect(plug.get_by_role("switch")).to_be_enabled()
        await client.publish("home/switch/av", "offline", qos=1)
        await expect(plug).to_contain_text(re.compile(r"Unavail\xadable since \d"))
        await expect(plug.get_by_role("switch")).to_have_count(0)
        await expect(visit.page.get_by_role("navigation", name="The home now")).to_contain_text("Switch unreachable")
        sheet = await open_sheet(visit.page, "Switch")
        await expect(sheet).to_contain_text("Check that the device has power")
        await expect(sheet.get_by_role("switch")).to_be_disabled()
        await visit.go("device/mqtt%3Aswitch")
        await expect(visit.page.locator("main")).to_contain_text("Unavailable since")
        await expect(visit.page.get_by_role("switch")).to_be_disabled()


async def names(page: Page, section: str) -> list[str]:
    """Return the names of a section's tiles, in order."""
    return await page.get_by_role("region", name=section, exact=True).locator("article strong").all_inner_texts()


async def test_each_of_a_hundred_and_twenty_devices_is_easy_to_reach(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        await large(app, 120)
        page = visit.page
        await visit.open()
        await expect(page.locator(".columns article.tile")).to_have_count(122)
        await expect(page.get_by_text("Nobody's")).to_have_count(0)
        count = await tabs_to(page, page.get_by_role("button", name="Search devices and rooms"))
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("searchbox")).to_be_focused()
        await page.keyboard.type("lamp 117")
        await expect(page.locator("article.tile")).to_have_count(1)
        count += await tabs_to(page, tile(page, "Lamp 117").get_by_role("switch"))
        assert count <= 60
        await page.get_by_role("searchbox").fill("room 3")
        await expect(page.locator("article.tile")).to_have_count(12)
        await page.get_by_role("searchbox").fill("")
        await page.get_by_role("link", name="Room 9").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Room 9")
        await page.go_back()
        await expect(page.get_by_role("searchbox")).to_be_focused()
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Fold Room 8").click()
        await expect(page.locator(".columns article.tile")).to_have_count(110)
        link = tile(page, "Lamp 119").get_by_role("link")
        await link.scroll_into_view_if_needed()
        before = await page.evaluate("scrollY")
        await open_sheet(page, "Lamp 119")
        assert await page.evaluate("scrollY") == before
        await page.get_by_role("link", name="All about this device").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Lamp 119")
        assert await page.evaluate("scrollY") == 0
        assert await page.title() == "Lamp 119 · Lares"
        await page.go_back()
        await expect(page.get_by_role("dialog", name="Lamp 119")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(page.locator(".columns article.tile")).to_have_count(110)
        assert await page.evaluate("scrollY") == before > 1000


async def tabs_to(page: Page, place: Locator) -> int:
    """Count how often Tab must be pressed until this place has the focus."""
    for count in range(1, 61):
        await page.keyboard.press("Tab")
        if await place.evaluate("(each) => each === document.activeElement"):
            return count
    raise AssertionError("not within 60 stops")


async def test_rooms_can_be_reordered(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        await large(app, 3)
        page = visit.page
        rooms = page.locator("header.room h2")
        await visit.open()
        await expect(rooms).to_have_text(["Room 0", "Room 1", "Room 2", "No room"])
        await page.get_by_role("button", name="Favourites and order").click()
        await page.get_by_role("button", name="Move Room 2 up").click()
        await expect(rooms).to_have_text(["Room 0", "Room 2", "Room 1", "No room"])
        await expect(page.get_by_role("button", name="Move Room 0 up")).to_be_disabled()
        await until(lambda: ["room_0", "room_2", "room_1"] in [each.get("rooms") for each in kept(app)], 20)
        async with visiting(browser, app) as other:
            await other.open()
            await expect(other.page.locator("header.room h2").nth(1)).to_have_text("Room 2")


async def test_the_page_of_a_device_lists_its_events(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        await visit.open("#/device/elgato_lights%3Alight%3A0")
        events = visit.page.get_by_role("region", name="Events")
        for action in ("on", "off"):
            assert (await app.command(LIGHT, "power", action)).status == 200
        app.hub.registry.publish_event("elgato_lights", LIGHT, "double", {})
        await expect(events.locator("strong").filter(has_text="Power: Off").first).to_be_visible()
        await expect(events.locator("strong").filter(has_text="Power: On").first).to_be_visible()
        await expect(events.locator("strong").filter(has_text="Double").first).to_be_visible()


async def test_favourites_order_and_hidden_devices_are_stored_with_the_key(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        await large(app, 6)
        page = visit.page
        await visit.open()
        await page.get_by_role("button", name="Favourites and order").click()
        for name in ("Lamp 2", "Lamp 4"):
            await tile(page, name).first.get_by_role("button", name=f"Favourite: {name}").click()
        await tile(page, "Lamp 0").get_by_role("button", name="Hide Lamp 0").click()
        assert await names(page, "Favourites") == ["Lamp 2", "Lamp 4"]
        favourite = page.get_by_role("region", name="Favourites")
        await favourite.get_by_role("button", name="Move Lamp 4").press("ArrowLeft")
        await expect(favourite.locator("strong").first).to_have_text("Lamp 4")
        await drag(page, favourite.get_by_role("button", name="Move Lamp 2"), favourite.locator("article").first)
        await expect(favourite.locator("strong").first).to_have_text("Lamp 2")
        await favourite.get_by_role("button", name="Move Lamp 2").press("ArrowRight")
        await page.get_by_role("button", name="Favourites and order").click()
        await expect(tile(page, "Lamp 0")).to_have_count(0)
        await expect(page.get_by_text("Hidden: 1")).to_be_visible()
        ids = ["shown:lamp_004", "shown:lamp_002"]
        await until(lambda: ids in [each.get("favourites") for each in kept(app)], 20)
        async with visiting(browser, app) as other:
            await other.open()
            assert await names(other.page, "Favourites") == ["Lamp 4", "Lamp 2"]
            await expect(tile(other.page, "Lamp 0")).to_have_count(0)
        async with visiting(browser, app) as reader:
            await reader.open(token=READER.text)
            await expect(tile(reader.page, "Lamp 0")).to_have_count(1)
            await reader.go("device/shown%3Alamp_003")
            await reader.page.get_by_role("button", name="Favourite: Lamp 3").click()
            await reader.page.wait_for_function("() => localStorage.lares_preferences")
            await reader.page.reload()
            await reader.go("")
            await expect(reader.page.get_by_role("region", name="Favourites").locator("strong")).to_have_text(
                "Lamp 3"
            )
            assert reader.asked("/preferences") == 0


def kept(app: App) -> list[dict[str, Any]]:
    return [value for _, value in app.hub.store.document.items("preferences/")]


async def drag(page: Page, handle: Locator, onto: Locator) -> None:
    """Drag the handle onto a card."""
    await handle.scroll_into_view_if_needed()
    start, end = await handle.bounding_box(), await onto.bounding_box()
    assert start is not None and end is not None
    await page.mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
    await page.mouse.down()
    for share in (0.5, 1.0):
        x, y = end["x"] + end["width"] / 2, end["y"] + end["height"] / 2
        await page.mouse.move(start["x"] + (x - start["x"]) * share, start["y"] + (y - start["y"]) * share)
    await page.mouse.up()


SLEEPER = """return { id = "sleeper", name = "Sleeper", enabled = true,
    trigger = { type = "device_state_change", device_id = "LIGHT", attribute = "power" },
    execute = function(ctx) ctx:sleep(600) end }"""
FAILING = """return { id = "failing", name = "Failing", trigger = { type = "interval", every_secs = 3600 },
    execute = function(ctx) error("no such lamp") end }"""


async def test_running_automations_are_shown_and_can_be_cancelled(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "automations"
    folder.mkdir(parents=True)
    (folder / "sleeper.lua").write_text(SLEEPER.replace("LIGHT", LIGHT))
    (folder / "failing.lua").write_text(FAILING)
    async with open_app(root=tmp_path) as app, visiting(browser, app) as visit:
        page = visit.page
        running_ = asyncio.create_task(app.post("/automations/sleeper/execute", {}))
        await app.post("/automations/failing/execute", {})
        await until(lambda: bool(app.hub.automations.list_views()) and busy(app), 20)
        await visit.open()
        await expect(page.get_by_role("region", name="Running now")).to_contain_text("Sleeper")
        before = visit.asked("/executions")
        await app.command(LIGHT, "brightness", "set", 33)
        await until(lambda: visit.asked("/executions") > before, 2)
        await visit.go("automations")
        await expect(page.locator("main a.title").first).to_contain_text(
            "no such lamp"
        )  # failed automations come first
        await page.get_by_role("link", name="Sleeper").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Sleeper")
        part = page.get_by_role("region", name="Running now")
        await expect(part).to_contain_text("Waiting until")
        await expect(page.get_by_role("region", name="When it runs")).to_contain_text(
            "Simulated light: Power changes"
        )
        await part.get_by_role("button", name="Cancel").click()
        await expect(part).to_have_count(0)
        assert (await running_).status == 400
        past = page.get_by_role("region", name="What happened")
        await expect(past).to_contain_text("Cancelled")
        await expect(past).to_contain_text("Waited 10 min")
        await expect(past).not_to_contain_text("Failed")


def busy(app: App) -> bool:
    return any(view.running for view in app.hub.automations.list_views())


async def test_variables_and_timers_are_shown_and_set(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        page = visit.page
        await app.ask("PUT", "/variables/mode", json={"value": "away"})
        await visit.open("#/automations")
        await page.get_by_label("Value of mode").fill("home")
        await page.keyboard.press("Enter")
        await until(lambda: app.hub.environment.variables.find("mode") == "home", 20)
        await page.get_by_label("Name of a new variable").fill("heat")
        await page.keyboard.press("Enter")
        await page.get_by_label("Value of heat").fill("21.5")
        await page.keyboard.press("Enter")
        await until(lambda: app.hub.environment.variables.find("heat") == 21.5, 20)
        await page.get_by_role("button", name="Delete mode").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await until(lambda: app.hub.environment.variables.find("mode") is None, 20)


async def test_a_room_has_a_page_with_its_readings(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        await furnish(app)
        for value in (19.9, 20.6, 21.2):
            for device, name in (("air", "temperature"), ("heater", "temperature")):
                measured = {"value": value, "unit": "°C"}
                app.hub.registry.update_attributes("shown", f"shown:{device}", {name: measured})
        await visit.open()
        await visit.page.get_by_role("link", name="Bedroom", exact=True).click()
        await expect(visit.page.get_by_role("heading", level=1)).to_have_text("Bedroom")
        picture = visit.page.locator("figure", has=visit.page.locator("figcaption", has_text="Temperature"))
        await expect(picture.locator("li")).to_have_count(2)
        await expect(picture).to_contain_text("Bedroom air")
        await expect(picture.locator("path.line")).to_have_count(2)
        await expect(tile(visit.page, "Radiator")).to_be_visible()


async def test_the_wall_dims_by_itself_and_the_first_touch_only_wakes_it(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app, viewport={"width": 1280, "height": 800}) as visit:
        page = visit.page
        await page.clock.install()
        await visit.open("#/wall")
        switch_ = tile(page, "Simulated light").get_by_role("switch")
        box = await tile(page, "Simulated light").bounding_box()
        assert box is not None and min(box["width"], box["height"]) >= 48
        await expect(page.locator("header.top")).to_have_count(0)
        await expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"\d+:\d\d"))
        await page.clock.fast_forward(70_000)
        await expect(page.locator(".panel.dim")).to_be_visible()
        before = await switch_.get_attribute("aria-checked")
        await page.mouse.click(box["x"] + 9, box["y"] + box["height"] - 9)
        await expect(page.locator(".panel.dim")).to_have_count(0)
        assert await switch_.get_attribute("aria-checked") == before


LANGUAGES = {
    "en-GB": "Home",
    "fi-FI": "Home",
    "de-AT": "Zuhause",
    "es-ES": "Casa",
    "fr-FR": "Maison",
    "it-IT": "Casa",
    "nl-NL": "Thuis",
    "pl-PL": "Dom",
}


@pytest.mark.parametrize("locale", LANGUAGES)
async def test_only_the_selected_language_is_fetched(browser: Browser, locale: str) -> None:
    async with open_app() as app, visiting(browser, app, locale=locale) as visit:
        await visit.open()
        await expect(visit.page.locator("nav a").first).to_have_text(LANGUAGES[locale])
        fetched = [each for each in visit.requests if "/words_" in each]
        spoken = "en" if locale == "fi-FI" else locale[:2]
        assert [each.rpartition("/")[2] for each in fetched] == [f"words_{spoken}.js"]
        assert await visit.page.evaluate("document.documentElement.lang") == spoken


async def test_refusals_are_in_the_language_of_the_page(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app, locale="de-DE") as visit:
        page, problem = visit.page, visit.page.get_by_role("alert")
        await visit.open("#/automations")
        await page.get_by_label("Name einer neuen Variablen").fill("a b")
        await page.keyboard.press("Enter")
        await page.get_by_label("Wert von a b").fill("1")
        await page.keyboard.press("Enter")
        await expect(problem).to_have_text(re.compile("^Das geht so nicht: .*a b"))
        await visit.go("")
        await app.tv.unplug()
        await tile(page, "Simulated TV - LARES0000002").get_by_role("switch").click()
        await expect(problem).to_have_text(
            re.compile("^Simulated TV - LARES0000002: Das Gerät antwortet nicht: .* does not answer")
        )
