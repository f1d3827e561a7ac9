"""One browser for all tests of the page, and checks of every page."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pytest
import pytest_asyncio

from tests.fakes import app as apps
from tests.fakes.app import MASTER, App, open_app
from tests.fakes.programs import need

if TYPE_CHECKING:  # the quick tests do not start a browser
    from playwright.async_api import Browser, BrowserContext, Locator, Page

SWITCHES = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--js-flags=--expose-gc"),
)
PATIENCE_MS = 20_000

GO = """(hash) => new Promise((done) => {
    if (location.hash === hash || (location.hash === "" && hash === "#/")) return done();
    const afterDrawing = () => requestAnimationFrame(() => requestAnimationFrame(done));
    addEventListener("hashchange", afterDrawing, { once: true });
    location.hash = hash;
})"""
"""Waits until the page is drawn after a change of the address."""


def find_browser() -> str:
    """Return the path of Chromium, from PROOF_BROWSER or as installed. Skip the test if Chromium is missing."""
    return os.environ.get("PROOF_BROWSER") or need("chromium")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    url: str


@dataclass(slots=True, kw_only=True)
class Visit:
    """A page of the hub, its requests, and its errors."""

    app: App | Place
    page: Page
    context: BrowserContext
    requests: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    async def open(self, path: str = "", token: str | None = MASTER) -> None:
        """Open the page, with a token in its address or without one."""
        query = "" if token is None else f"?token={token}"
        await self.page.goto(f"{self.app.url}/dashboard/{query}{path}")
        if token is not None:
            await self.page.wait_for_selector("main:not(.offline)")

    async def go(self, view: str) -> None:
        """Go to a view by its address, and wait until it is drawn."""
        await self.page.evaluate(GO, f"#/{view}")
        first, _, id_ = view.partition("/")
        drawn = f"main.{first or 'home'}[data-id={json.dumps(unquote(id_))}] h1"
        await self.page.wait_for_selector("dialog" if first in ("sheet", "group") else drawn, state="attached")

    def asked(self, path: str) -> int:
        """Count the requests for this path."""
        return sum(each.split("?")[0] == f"{self.app.url}{path}" for each in self.requests)


def tile(page: Page, name: str) -> Locator:
    """Return the tile of a device or group. Ignore its second tile under "On now"."""
    exact = re.compile(f"^{re.escape(name)}$")
    return page.locator("article.tile:not(.now *)", has=page.locator("strong", has_text=exact))


def sheet_link(page: Page, device_id: str) -> Locator:
    """Return the link to a device's sheet on a tile, or on a reading of the home."""
    return page.locator(f'.columns a[href="#/sheet/{quote(device_id, safe="")}"]')


async def open_sheet(page: Page, name: str) -> Locator:
    """Tap the name of a device or group, and return the sheet that opens."""
    from playwright.async_api import expect

    await tile(page, name).get_by_role("link").click()
    sheet = page.get_by_role("dialog", name=name, exact=True)
    await expect(sheet).to_be_visible()
    return sheet


@pytest.fixture(scope="module", autouse=True)
def _with_dashboard() -> Iterator[None]:
    """Make hubs serve the page."""
    apps.HAS_DASHBOARD = True
    yield
    apps.HAS_DASHBOARD = False


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Provide Chromium without a window."""
    path = find_browser()  # skips the test if there is no browser
    from playwright.async_api import async_playwright, expect

    expect.set_options(timeout=PATIENCE_MS)  # the default limit is too short for a busy machine
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=path, args=list(SWITCHES))
        yield opened
        await opened.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[App]:
    """Provide a hub that polls its devices every second, for all tests of a module."""
    async with open_app() as app:
        yield app


@asynccontextmanager
async def visiting(browser: Browser, app: App | Place, **options: Any) -> AsyncIterator[Visit]:
    """Provide a separate browser context. If the page has an error, or sends a request to another host, the test
    fails."""
    context = await browser.new_context(**{"viewport": {"width": 390, "height": 844}, **options})
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    visit = Visit(app=app, page=page, context=context)
    page.on("request", lambda request: visit.requests.append(request.url))
    page.on("pageerror", lambda error: visit.faults.append(str(error)))
    page.on(
        "console",
        lambda sentence: visit.faults.append(sentence.text) if "Content Security" in sentence.text else None,
    )
    try:
        yield visit
        assert not visit.faults
        foreign = [each for each in visit.requests if not each.startswith((app.url, "blob:"))]
        assert not foreign
    finally:
        await context.close()
