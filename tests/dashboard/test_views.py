"""Every view, at every width, light and dark, with text of the usual and of twice the size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from tests.dashboard.conftest import visiting
from tests.dashboard.homes import announced_home
from tests.dashboard.npm import AXE, script
from tests.fakes.house import House

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

EDITING = "Favourites and order"
VIEWS = (
    *("", "automations", "automations/good_morning", "arrange", "box", "wall", "room/living"),
    *("device/mqtt%3Alight", "device/mqtt%3Acover", EDITING),
)
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
"""Texts that are wider than the place that they have."""


async def prepare(house: House) -> None:
    """A room, a group, a variable, a hook, and an automation that has failed."""
    for component in ("sensor", "climate", "light"):
        if component == "sensor":
            await house.post("/rooms", {"id": "living", "name": "Living room"})
        await house.post(f"/devices/mqtt:{component}/room", {"room_id": "living"})
    await house.post("/groups", {"id": "lit", "name": "All lights", "members": ["mqtt:light", "mqtt:switch"]})
    await house.ask("PUT", "/variables/mode", json={"value": "away"})
    await house.post("/auth/keys", {"label": "doorbell", "role": "hook", "hook": "doorbell"})
    await house.post("/automations/good_morning/execute", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_view_is_readable_at_every_width_and_text_size(
    browser: Browser, tmp_path: Path, scheme: Any
) -> None:
    axe = script(AXE)
    folder = tmp_path / "config" / "automations"
    folder.mkdir(parents=True)
    (folder / "good_morning.lua").write_text(AUTOMATION)
    async with announced_home(tmp_path) as (house, client), visiting(browser, house, color_scheme=scheme) as visit:
        await client.publish("home/switch/av", "offline", qos=1)
        await prepare(house)
        await visit.open()
        await visit.page.evaluate(axe)
        faults: list[Any] = []
        for view in VIEWS:
            await visit.go("" if view == EDITING else view)
            if view == EDITING:
                await visit.page.get_by_role("button", name=EDITING).click()
            await visit.page.wait_for_timeout(150)
            for width in WIDTHS:
                await visit.page.set_viewport_size({"width": width, "height": 844})
                for size in TEXT_SIZES:
                    found = await judge(visit.page, size)
                    faults.extend((view, width, size, *each) for each in found)
        assert not faults, "\n".join(map(str, faults))


async def judge(page: Page, size: str) -> list[Any]:
    """What axe finds, what reaches over the edge, and what is cut off, with text of this size."""
    await page.evaluate("(size) => { document.documentElement.style.fontSize = size }", size)
    found = await page.evaluate(
        "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) =>"
        " [id, nodes.map(({ html }) => html.slice(0, 160))]))"
    )
    beyond, cut_off = await page.evaluate(BEYOND), await page.evaluate(CUT_OFF)
    return [*found, *(["beyond", each] for each in beyond), *(["cut off", each] for each in cut_off)]
