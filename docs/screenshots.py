"""Takes the pictures of the dashboard that lie beside this file: `.venv/bin/python docs/screenshots.py`.

It needs the packages of firmware/test.lock, and Chromium: `apt-get install chromium` or PROOF_BROWSER.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from playwright.async_api import Browser, async_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.dashboard.conftest import SWITCHES, find_browser, visiting
from tests.fakes import house as houses
from tests.fakes.furnished import furnish
from tests.fakes.house import LIGHT, House, open_house

FOLDER = Path(__file__).parent
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1200, "height": 800}
VIEWS = {
    "home": "",
    "room": "room/bedroom",
    "device": f"device/{LIGHT.replace(':', '%3A')}",
    "automations": "automations",
    "box": "box",
}


async def main() -> None:
    """Every picture: phone and desktop, light and dark."""
    houses.HAS_DASHBOARD = True
    async with async_playwright() as playwright, open_house(root=FOLDER.parent) as house:
        browser = await playwright.chromium.launch(executable_path=find_browser(), args=list(SWITCHES))
        await furnish(house)
        for value in (20, 60, 35, 90, 75):
            await house.command(LIGHT, "brightness", "set", value)
        await house.command(LIGHT, "power", "on")
        for value in (18.9, 19.6, 20.2, 19.4):
            measured = {"value": value, "unit": "°C"}
            house.hub.registry.update_attributes("shown", "shown:air", {"temperature": measured})
            house.hub.registry.update_attributes("shown", "shown:heater", {"temperature": measured})
        for name, view in VIEWS.items():
            await picture(browser, house, f"phone-{name}-light", view, PHONE, "light")
        await picture(browser, house, "phone-home-dark", "", PHONE, "dark")
        await picture(browser, house, "desktop-home-light", "", DESKTOP, "light")
        await picture(browser, house, "desktop-home-dark", "", DESKTOP, "dark")
        await picture(browser, house, "wall-dark", "wall", DESKTOP, "dark")
        await browser.close()


async def picture(browser: Browser, house: House, name: str, view: str, size: dict[str, int], scheme: str) -> None:
    """One view as a file."""
    options = {"viewport": size, "color_scheme": scheme, "locale": "en-GB", "reduced_motion": "reduce"}
    async with visiting(browser, house, **options) as visit:
        await visit.open(f"#/{view}")
        await visit.page.wait_for_timeout(1000)
        await visit.page.screenshot(path=FOLDER / f"dashboard-{name}.png")


if __name__ == "__main__":
    asyncio.run(main())
