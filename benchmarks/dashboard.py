"""The dashboard with 200 devices: the browser's own timing from the request of the page to the last card."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Iterator

from playwright.async_api import async_playwright

from tests.dashboard.conftest import SWITCHES, find_browser, visiting
from tests.fakes.furnished import many, show
from tests.fakes.house import open_house

DEVICES = 200
ROUNDS = 7

MEASURE = """() => new Promise((resolve) => {
    const tell = (usable) => resolve([performance.getEntriesByName("first-contentful-paint")[0].startTime, usable]);
    const look = () => {
        const usable = performance.now();
        if (document.querySelectorAll("article.card").length < %d) requestAnimationFrame(look);
        else setTimeout(tell, 300, usable);
    };
    look();
})"""


def measure() -> Iterator[tuple[str, str]]:
    """Yield each figure's name and value."""
    paints, cards = zip(*asyncio.run(_measure()), strict=True)
    yield "from the request to the first paint", f"{statistics.median(paints):.0f} ms"
    yield f"from the request until {DEVICES} devices can be used", f"{statistics.median(cards):.0f} ms"


async def _measure() -> list[tuple[float, float]]:
    async with async_playwright() as playwright, open_house() as house:
        show(house.hub.registry, *many(DEVICES))
        browser = await playwright.chromium.launch(executable_path=find_browser(), args=list(SWITCHES))
        found = []
        for _ in range(ROUNDS):
            async with visiting(browser, house) as visit:
                await visit.open()
                await visit.page.goto("about:blank")
                await visit.page.goto(f"{house.url}/dashboard/", wait_until="commit")
                first, usable = await visit.page.evaluate(MEASURE % DEVICES)
                found.append((first, usable))
        await browser.close()
        return found
