"""The page works with only a keyboard. Tab reaches each control of each view with a visible focus, and one control
of each kind is operated."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from appliance.adapters.network_search.search import Found
from appliance.home.events import DeviceEvent
from tests.dashboard.conftest import Visit, visiting
from tests.dashboard.homes import announced_home, large
from tests.dashboard.test_views import AUTOMATION, EDITING, VIEWS, prepare
from tests.fakes.app import App, open_app
from tests.fakes.patience import until

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

STOPS = """() => {
    const all = "a[href], button, input, select, textarea, summary, [tabindex='0']";
    const seen = (each) => !each.matches(":disabled") && each.checkVisibility({ visibilityProperty: true });
    const place = document.querySelector("dialog[open]") ?? document;
    window.missed = new Set([...place.querySelectorAll(all)].filter(seen));
    window.first = null;
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute("tabindex");
    return window.missed.size;
}"""
"""A script that records all usable controls, and moves the focus before the first control."""

STEP = """() => {
    const at = document.activeElement;
    if (at === document.body || at === window.first) return null;
    window.first ??= at;
    window.missed.delete(at);
    const { outlineStyle, outlineWidth } = getComputedStyle(at);
    const { top, bottom, width } = at.getBoundingClientRect();
    const isInSight = width > 0 && bottom > 0 && top < innerHeight;
    return isInSight && outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 ? "" : at.outerHTML.slice(0, 160);
}"""
"""A script that returns null at the end of the page, and otherwise the fault of the focused control."""


@pytest.mark.parametrize("width", [390, 768, 1280])
async def test_tab_reaches_every_control_visibly(browser: Browser, tmp_path: Path, width: int) -> None:
    folder = tmp_path / "config" / "automations"
    folder.mkdir(parents=True)
    (folder / "good_morning.lua").write_text(AUTOMATION)
    options = {"viewport": {"width": width, "height": 844}}
    async with announced_home(tmp_path) as (app, _), visiting(browser, app, **options) as visit:
        await prepare(app)
        await visit.open()
        faults: list[tuple[str, str]] = []
        for view in VIEWS:
            await visit.go("" if view == EDITING else view)
            if view == EDITING:
                await visit.page.get_by_role("button", name=EDITING).click()
            await visit.page.wait_for_timeout(300)
            faults.extend((view, fault) for fault in await tab_through(visit.page))
        assert not faults, "\n".join(map(str, faults))


async def tab_through(page: Page) -> list[str]:
    """Press Tab until the end of the page. Return the controls that were skipped, or whose focus is hidden."""
    count = await page.evaluate(STOPS)
    faults = []
    for _ in range(count + 20):
        await page.keyboard.press("Tab")
        fault = await page.evaluate(STEP)
        if fault is None:
            break
        faults.extend([fault] if fault else [])
    else:
        faults.append("there is no end")
    missed = await page.evaluate(
        "[...window.missed].filter((each) => each.isConnected).map((each) => each.outerHTML.slice(0, 160))"
    )
    return [*faults, *(f"missed: {each}" for each in missed)]


async def focus(visit: Visit, role: str, name: str) -> None:
    """Press Tab until this control has the focus. Before the call, any control may have the focus."""
    place = visit.page.get_by_role(role, name=name, exact=True).first  # type: ignore[arg-type]
    await expect(place).to_be_visible()
    for _ in range(250):
        if await place.evaluate("(each) => each === document.activeElement"):
            return
        await visit.page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {name}")


async def press(visit: Visit, role: str, name: str, *keys: str) -> None:
    """Go to a control by Tab, and press these keys."""
    await focus(visit, role, name)
    for key in keys:
        await visit.page.keyboard.press(key)


def shows(app: App, device: str, name: str) -> object:
    return app.hub.registry.find_devices([device])[0].attributes.get(name)


def has_changed(app: App, device: str, name: str, before: object) -> bool:
    return shows(app, device, name) != before


async def test_one_control_of_each_kind_works_with_the_keyboard(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        page, light = visit.page, "elgato_lights:light:0"
        await large(app, 20)
        await app.ask("PUT", "/variables/mode", json={"value": "away"})
        await visit.open()
        before = shows(app, light, "power")
        await press(visit, "switch", "Simulated light: Power", "Space")
        await until(lambda: shows(app, light, "power") != before, 20)
        await press(visit, "link", "Simulated light", "Enter")
        level = app.light.lights[0].brightness + 3
        await press(visit, "slider", "Simulated light: Brightness", *["ArrowRight"] * 3)
        await until(lambda: shows(app, light, "brightness") == level, 20)
        assert [each["lights"][0].get("brightness") for each in app.light.writes].count(level) == 1
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(page.get_by_role("link", name="Simulated light", exact=True).first).to_be_focused()

        await press(visit, "button", "Fold Room 3", "Enter")
        await expect(page.get_by_role("button", name="Fold Room 3")).to_have_attribute("aria-expanded", "false")
        await expect(page.get_by_role("button", name="Fold Room 3")).to_be_focused()
        await page.keyboard.press("/")
        await expect(page.get_by_role("searchbox")).to_be_focused()
        await page.keyboard.type("lamp 17")
        await expect(page.locator("article.tile")).to_have_count(1)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog", name="Lamp 17", exact=True)).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await page.get_by_role("searchbox").fill("lamp 1")
        await page.keyboard.press("Enter")  # several devices
        assert page.url.rstrip("#/").endswith("/dashboard")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("searchbox")).to_have_count(0)

        await press(visit, "button", EDITING, "Enter")
        await press(visit, "button", "Move Lamp 10: drag, or arrow keys", "ArrowLeft")
        await expect(page.get_by_role("button", name="Move Lamp 10")).to_be_focused()
        await expect(page.get_by_role("region", name="Room 0").locator("strong").first).to_have_text("Lamp 10")
        await press(visit, "button", EDITING, "Enter")

        await press(visit, "link", "Wall panel", "Enter")
        await expect(page.locator(".panel")).to_be_visible()
        await press(visit, "link", "Home", "Enter")

        await visit.go("settings/rooms")
        await press(visit, "combobox", "Lamp 1", "ArrowDown")
        await until(lambda: app.hub.registry.find_devices(["shown:lamp_001"])[0].room_id != "room_1", 20)
        await dialog_by_keys(visit)

        await visit.go("automations")
        await press(visit, "textbox", "Value of mode", "ControlOrMeta+A", *"home", "Enter")
        await until(lambda: app.hub.environment.variables.find("mode") == "home", 20)
        await visit.go("device/elgato_lights%3Alight%3A0")
        await press(visit, "button", "Week", "Enter")
        await expect(page.get_by_role("button", name="Week")).to_have_attribute("aria-pressed", "true")
        await visit.go("settings/hooks")
        await press(visit, "textbox", "Id of a new hook", *"bell", "Enter")
        await expect(page.get_by_role("dialog")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("textbox", name="Id of a new hook")).to_be_focused()


RARE = """
[adapters.virtual]
[[adapters.virtual.devices]]
id = "hall"
name = "Hall"
[adapters.virtual.devices.attributes]
color_hs = { hue = 10, saturation = 90 }
contact = "closed"
"""


FOUND = Found(kind="wled", name="Desk", address="10.0.0.2:80", serial="a", section="[adapters.wled]")


async def test_rare_controls_work_with_the_keyboard_and_the_focus_stays_near_removed_ones(browser: Browser) -> None:
    options = {"viewport": {"width": 768, "height": 844}}
    async with open_app(adapters=RARE, found=[FOUND]) as app, visiting(browser, app, **options) as visit:
        page, hall = visit.page, "virtual:hall"
        for name in ("first", "second"):
            await app.hub.environment.timers.start(name, 3600, None, "test")
            await app.post("/rooms", {"id": name, "name": name})
        await visit.open("#/device/virtual%3Ahall")
        for slider in ("Hall: Colour", "Hall: Colour, Saturation"):
            before = shows(app, hall, "color_hs")
            await press(visit, "slider", slider, "ArrowLeft")
            await until(partial(has_changed, app, hall, "color_hs", before), 20)
        await press(visit, "button", "Open", "Enter")
        await until(lambda: shows(app, hall, "contact") == "open", 20)
        await press(visit, "textbox", "Event", "ControlOrMeta+A", *"double", "Enter")
        await until(lambda: DeviceEvent(device_id=hall, event="double", data={}) in app.events, 20)

        await visit.go("automations")
        cancel = page.get_by_role("button", name="Cancel")
        await expect(cancel).to_have_count(2)
        await press(visit, "button", "Cancel", "Enter")
        await expect(cancel).to_have_count(1)
        await expect(cancel).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(cancel).to_have_count(0)
        assert [*app.hub.environment.timers.list_all()] == []
        assert await page.evaluate("document.activeElement !== document.body")

        await visit.go("settings/rooms")
        await press(visit, "button", "Delete first", "Enter")
        await press(visit, "button", "Delete", "Enter")
        await expect(page.get_by_role("button", name="Rename second")).to_be_focused()

        await visit.go("settings/devices")
        await press(visit, "button", "Search", "Enter")
        await press(visit, "textbox", "Section for Desk", "ControlOrMeta+C")


async def dialog_by_keys(visit: Visit) -> None:
    """Check that a dialog keeps Tab inside, that Escape closes it and restores the focus, and that Enter confirms
    it."""
    page = visit.page
    await press(visit, "button", "Delete Nobody's", "Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    for _ in range(4):
        await page.keyboard.press("Tab")
        outside = "!document.activeElement.closest('dialog') && document.activeElement !== document.body"
        assert not await page.evaluate(outside)
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("button", name="Delete Nobody's")).to_be_focused()
    await page.keyboard.press("Enter")
    await press(visit, "button", "Delete", "Enter")
    await expect(page.get_by_role("button", name="Delete Nobody's")).to_have_count(0)
