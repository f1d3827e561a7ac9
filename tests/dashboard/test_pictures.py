"""Cameras on the page. The newest still picture is fetched with the key while the card is visible."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiomqtt
import pytest
from playwright.async_api import Browser, Locator, expect

from tests.adapters.mqtt.broker import OwnBroker, running
from tests.dashboard.conftest import tile, visiting
from tests.dashboard.homes import TOML
from tests.fakes.announced import PNG
from tests.fakes.app import App, open_app
from tests.fakes.furnished import many, show
from tests.fakes.patience import until

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

GIF = base64.b64decode("R0lGODlhAgABAIAAAP8AAAAA/yH5BAAAAAAALAAAAAACAAEAAAICRAoAOw==")
PATH = "/devices/mqtt%3Aporch/picture"
COUNT_ADDRESSES = """() => {
    window.open_addresses = new Set();
    const [make, revoke] = [URL.createObjectURL, URL.revokeObjectURL];
    URL.createObjectURL = (blob) => { const made = make.call(URL, blob); open_addresses.add(made); return made; };
    URL.revokeObjectURL = (address) => { open_addresses.delete(address); revoke.call(URL, address); };
}"""


@asynccontextmanager
async def camera_home(tmp_path: Path) -> AsyncIterator[tuple[App, aiomqtt.Client]]:
    """Provide a home with a camera that has not sent a picture."""
    async with running(OwnBroker(tmp_path)) as broker, broker.client() as client:
        announced = {"topic": "porch/still", "unique_id": "porch", "name": None,
                     "device": {"identifiers": ["porch"], "name": "Porch"}}  # fmt: skip
        await client.publish("homeassistant/camera/porch/config", json.dumps(announced), qos=1, retain=True)
        async with open_app(adapters=f"{TOML}{broker.port}\n") as app:
            await until(lambda: bool(app.hub.registry.list_devices()), 20)
            yield app, client


async def size(still: Locator) -> Any:
    """Return the size of the loaded picture."""
    await expect(still).to_be_visible()
    await still.evaluate("(each) => each.decode()")
    return await still.evaluate("(each) => [each.naturalWidth, each.naturalHeight]")


async def test_a_camera_shows_its_newest_picture_and_keeps_no_older_one(browser: Browser, tmp_path: Path) -> None:
    async with camera_home(tmp_path) as (app, client), visiting(browser, app) as visit:
        page, still = visit.page, tile(visit.page, "Porch").get_by_role("img", name="Picture of Porch")
        await page.add_init_script(f"({COUNT_ADDRESSES})()")
        await page.clock.install()
        await visit.open()
        await expect(tile(page, "Porch")).to_contain_text("No picture yet.")
        assert visit.asked(PATH) == 0
        await client.publish("porch/still", base64.b64decode(PNG), qos=1)
        assert await size(still) == [1, 1] and visit.asked(PATH) == 1
        await expect(tile(page, "Porch")).not_to_contain_text("No picture")
        await expect(tile(page, "Porch")).not_to_contain_text("image/png")
        await client.publish("porch/still", GIF, qos=1)
        await until(lambda: "image/gif" in app.hub.registry.get_device("mqtt:porch").attributes.values(), 20)
        before = await still.get_attribute("src")
        await page.clock.run_for(10_000)
        await expect(still).not_to_have_attribute("src", before or "")
        assert await size(still) == [2, 1] and visit.asked(PATH) == 2
        assert await page.evaluate("open_addresses.size") == 1
        await visit.go("device/mqtt%3Aporch")
        assert await size(page.get_by_role("img", name="Picture of Porch")) == [2, 1]
        assert await page.evaluate("open_addresses.size") == 1
        await visit.go("settings")
        assert await page.evaluate("open_addresses.size") == 0


async def test_a_hidden_camera_is_requested_again_when_it_is_visible(browser: Browser, tmp_path: Path) -> None:
    async with camera_home(tmp_path) as (app, client), visiting(browser, app) as visit:
        show(app.hub.registry, *many(60))
        await client.publish("porch/still", base64.b64decode(PNG), qos=1)
        await until(lambda: len(app.hub.registry.get_device("mqtt:porch").attributes) == 2, 20)
        await visit.page.clock.install()
        await visit.open()
        assert await size(tile(visit.page, "Porch").get_by_role("img")) == [1, 1]
        await visit.page.locator("article.tile").last.scroll_into_view_if_needed()
        await expect(tile(visit.page, "Porch")).not_to_be_in_viewport()
        await visit.page.clock.run_for(60_000)
        assert visit.asked(PATH) == 1
        await tile(visit.page, "Porch").scroll_into_view_if_needed()
        await until(lambda: visit.asked(PATH) == 2, 20)
