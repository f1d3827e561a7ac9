"""The dashboard with 200 devices: the browser's own timing from the request of the page to the last card."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from playwright.async_api import async_playwright

from benchmarks._frame import Row, Sample, Skipped
from benchmarks._lag import Lags, watched_here
from tests.dashboard.conftest import SWITCHES, find_browser, visiting
from tests.fakes.furnished import many, show
from tests.fakes.house import open_house

DEVICES = 200

PAINT = Row(label="from the request to the first paint", unit="ms")
USABLE = Row(label=f"from the request until {DEVICES} devices can be used", unit="ms")

MEASURE = """() => new Promise((resolve) => {
    const tell = (usable) => resolve([performance.getEntriesByName("first-contentful-paint")[0].startTime, usable]);
    const look = () => {
        const usable = performance.now();
        if (document.querySelectorAll("article.card").length < %d) requestAnimationFrame(look);
        else setTimeout(tell, 300, usable);
    };
    look();
})"""


def measure(rounds: int) -> Iterator[Sample]:
    """Open the page again and again."""
    try:
        find_browser()
    except pytest.fail.Exception as missing:
        raise Skipped(str(missing)) from None
    found, lags = asyncio.run(_measure(rounds))
    for paint, usable in found:
        yield PAINT.sample(paint)
        yield USABLE.sample(usable)
    yield from lags.samples()


async def _measure(rounds: int) -> tuple[list[tuple[float, float]], Lags]:
    async with async_playwright() as playwright, open_house() as house:
        show(house.hub.registry, *many(DEVICES))
        browser = await playwright.chromium.launch(executable_path=find_browser(), args=list(SWITCHES))
        found = []
        async with watched_here() as lags:
            for _ in range(rounds):
                async with visiting(browser, house) as visit:
                    await visit.open()
                    await visit.page.goto("about:blank")
                    await visit.page.goto(f"{house.url}/dashboard/", wait_until="commit")
                    first, usable = await visit.page.evaluate(MEASURE % DEVICES)
                    found.append((first, usable))
        await browser.close()
        return found, lags
