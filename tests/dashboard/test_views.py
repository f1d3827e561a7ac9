"""All views, at all widths, in light and dark colours, with text of normal size and of twice this size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from tests.dashboard.conftest import visiting
from tests.dashboard.homes import announced_home
from tests.dashboard.npm import AXE, script
from tests.fakes.app import App

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

EDITING = "Favourites and order"
VIEWS = (
    *("", "automations", "automations/good_morning", "wall", "room/living", "list/lights", "settings"),
    *(f"settings/{each}" for each in ("devices", "rooms", "keys", "hooks", "backup", "look", "about", "diagnostics")),
    *("device/mqtt%3Alight", "device/mqtt%3Acover", EDITING, "sheet/mqtt%3Alight"),
)
QUESTION = "a question"
WIDTHS = (390, 768, 1280)
TEXT_SIZES = ("100%", "200%")

AUTOMATION = """return { id = "good_morning", name = "Good morning", description = "Wakes the house.",
    trigger = { type = "interval", every_secs = 3600 }, execute = function(ctx) error("no such lamp") end }"""

BEYOND = """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
    .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
    .map((each) => each.outerHTML.slice(0, 120))"""

TEXTS = "button:not(.switch), output, h1, h2, h3, dt, dd, small, strong, nav span, .label, .badge"
CUT_OFF = f"""() => [...document.querySelectorAll("{TEXTS}")]
    .filter((each) => each.clientWidth > 1 && each.scrollWidth > each.clientWidth + 1 && !each.closest(".hidden"))
    .map((each) => each.outerHTML.slice(0, 120))"""
"""Finds texts that are wider than their space."""

BROKEN = """() => [...document.querySelectorAll("h1, h2, h3, button, dt, small, summary, nav span, .label, .badge")]
    .filter((each) => !each.closest(".hidden"))
    .flatMap((each) => [...each.childNodes].filter(({ nodeType, data }) => nodeType === 3 && !data.includes("/")))
    .flatMap((node) => [...node.data.matchAll(/[\\p{L}\\u00AD]+/gu)].filter(({ 0: word, index }) => {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
        return !word.includes("\\u00AD") && lines.size > 1;
    })).map(([word]) => word)"""
"""Finds words that are broken over two lines. Soft hyphens and addresses are allowed."""


async def prepare(app: App) -> None:
    """Add a room, a group, a variable, a hook, and an automation that has failed."""
    for component in ("sensor", "climate", "light"):
        if component == "sensor":
            await app.post("/rooms", {"id": "living", "name": "Living room"})
        await app.post(f"/devices/mqtt:{component}/room", {"room_id": "living"})
    await app.post("/groups", {"id": "lit", "name": "All lights", "members": ["mqtt:light", "mqtt:switch"]})
    await app.ask("PUT", "/variables/mode", json={"value": "away"})
    await app.post("/auth/keys", {"label": "doorbell", "role": "hook", "hook": "doorbell"})
    await app.post("/automations/good_morning/execute", {})


@pytest.mark.parametrize(("scheme", "locale"), [("light", "en-GB"), ("dark", "de-DE")])
async def test_every_view_is_readable_at_every_size(
    browser: Browser, tmp_path: Path, scheme: Any, locale: str
) -> None:
    axe = script(AXE)
    folder = tmp_path / "config" / "automations"
    folder.mkdir(parents=True)
    (folder / "good_morning.lua").write_text(AUTOMATION)
    options = {"color_scheme": scheme, "locale": locale}
    async with announced_home(tmp_path) as (app, client), visiting(browser, app, **options) as visit:
        await client.publish("home/switch/av", "offline", qos=1)
        await prepare(app)
        await visit.open()
        await visit.page.evaluate(axe)
        faults: list[Any] = []
        for view in (*VIEWS, QUESTION):
            await visit.go({EDITING: "", QUESTION: "settings/rooms"}.get(view, view))
            if view == EDITING:
                await visit.page.get_by_role(
                    "button", name=EDITING if locale == "en-GB" else "Favoriten und Reihenfolge"
                ).click()
            elif view == QUESTION:
                await visit.page.locator("main button[aria-label*=Living]").last.click()
            await visit.page.wait_for_timeout(150)
            for width in WIDTHS:
                await visit.page.set_viewport_size({"width": width, "height": 844})
                for size in TEXT_SIZES:
                    found = await judge(visit.page, size)
                    faults.extend((view, width, size, *each) for each in found)
        assert not faults, "\n".join(map(str, faults))


async def judge(page: Page, size: str) -> list[Any]:
    """Return the findings of axe, and elements that are too wide, cut off, or broken, at this text size."""
    await page.evaluate("(size) => { document.documentElement.style.fontSize = size }", size)
    found = await page.evaluate(
        "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) =>"
        " [id, nodes.map(({ html }) => html.slice(0, 160))]))"
    )
    looked = {"beyond": BEYOND, "cut off": CUT_OFF, "broken": BROKEN}
    seen = {name: await page.evaluate(look) for name, look in looked.items()}
    return [*found, *([name, each] for name, all_ in seen.items() for each in all_)]
