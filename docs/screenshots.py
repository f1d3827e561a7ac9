"""Takes the pictures of the dashboard that lie beside this file: `.venv/bin/python docs/screenshots.py`.

It needs the packages of firmware/test.lock, and Chromium: `apt-get install chromium` or PROOF_BROWSER.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.async_api import Browser, async_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.dashboard.conftest import SWITCHES, find_browser, visiting
from tests.fakes import app as apps
from tests.fakes.app import LIGHT, App, open_app
from tests.fakes.furnished import furnish
from tests.fakes.household import JumpingClock

FOLDER = Path(__file__).parent
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1200, "height": 800}
VIEWS = {
    "phone-home-light": ("", PHONE, "light"),
    "phone-home-dark": ("", PHONE, "dark"),
    "phone-room-light": ("room/bedroom", PHONE, "light"),
    "phone-device-light": (f"device/{LIGHT.replace(':', '%3A')}", PHONE, "light"),
    "desktop-home-light": ("", DESKTOP, "light"),
    "wall-dark": ("wall", DESKTOP, "dark"),
}
DAY = ((18.9, 20), (18.4, 20), (19.6, 60), (20.2, 35), (19.9, 35), (20.6, 90), (20.1, 75), (19.4, 75))
"""Temperature of the bedroom and brightness of the lamp, every other hour until now."""
STEP_SECS = 7200


async def main() -> None:
    """Every picture, after most of a day that passes at once."""
    apps.HAS_DASHBOARD = True
    clock = JumpingClock(datetime.now(UTC) - timedelta(seconds=STEP_SECS * len(DAY)))
    async with async_playwright() as playwright, open_app(root=FOLDER.parent, clock=clock) as app:
        browser = await playwright.chromium.launch(executable_path=find_browser(), args=list(SWITCHES))
        await furnish(app)
        await app.command(LIGHT, "power", "on")
        for degrees, percent in DAY:
            for name, offset in (("air", 0.0), ("heater", 0.7)):
                measured = {"value": round(degrees + offset, 1), "unit": "°C"}
                app.hub.registry.update_attributes("shown", f"shown:{name}", {"temperature": measured})
            await app.command(LIGHT, "brightness", "set", percent)
            clock.jump(STEP_SECS)
        for name, (view, size, scheme) in VIEWS.items():
            await picture(browser, app, name, view, size, scheme)
        await browser.close()


async def picture(browser: Browser, app: App, name: str, view: str, size: dict[str, int], scheme: str) -> None:
    """One view as a file."""
    options = {"viewport": size, "color_scheme": scheme, "locale": "en-GB", "reduced_motion": "reduce"}
    async with visiting(browser, app, **options) as visit:
        await visit.open(f"#/{view}")
        await visit.page.wait_for_timeout(1000)
        await visit.page.screenshot(path=FOLDER / f"dashboard-{name}.png")


if __name__ == "__main__":
    asyncio.run(main())
