"""The dashboard with 200 devices: the browser's own timing from the request of the page to the last card."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest
from playwright.async_api import async_playwright

from benchmarks._client import until_ready
from benchmarks._frame import Row, Sample, Skipped
from benchmarks._lag import watched
from benchmarks._processes import KEY, hub, lamps, peer
from tests.dashboard.conftest import SWITCHES, Place, find_browser, visiting

DEVICES = 200
BROWSER_NICENESS = 10
"""In a home the browser runs elsewhere; here, with a dozen threads, it takes what the hub leaves of the cores."""

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
    with peer("lamps", "1", str(DEVICES)) as ports, hub(lamps(ports)) as home, watched(home.port) as lags:
        asyncio.run(until_ready(home.port))
        os.nice(BROWSER_NICENESS)
        for paint, usable in asyncio.run(_visits(Place(url=f"http://127.0.0.1:{home.port}"), rounds)):
            yield PAINT.sample(paint)
            yield USABLE.sample(usable)
    yield from lags.samples()


async def _visits(place: Place, rounds: int) -> list[tuple[float, float]]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), args=list(SWITCHES))
        found = []
        for _ in range(rounds):
            async with visiting(browser, place) as visit:
                await visit.open(token=KEY)
                await visit.page.goto("about:blank")
                await visit.page.goto(f"{place.url}/dashboard/", wait_until="commit")
                first, usable = await visit.page.evaluate(MEASURE % DEVICES)
                found.append((first, usable))
        await browser.close()
        return found
