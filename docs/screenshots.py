"""Take the pictures of the dashboard: `.venv/bin/python docs/screenshots.py [--to FOLDER] [PART_OF_A_NAME…]`.

It needs the packages of firmware/test.lock, and Chromium: `apt-get install chromium` or PROOF_BROWSER.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, async_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.dashboard.conftest import SWITCHES, Visit, find_browser, visiting
from tests.dashboard.homes import FILES, furnish_flat, large
from tests.fakes import app as apps
from tests.fakes.app import MASTER, App, open_app
from tests.fakes.household import JumpingClock

FOLDER = Path(__file__).parent
SIZES: Mapping[str, tuple[int, int]] = {
    "phone": (390, 844),
    "tablet": (820, 1180),
    "laptop": (1280, 900),
    "desktop": (1920, 1080),
}
SCHEMES = ("light", "dark")
FLAT = {
    "home": "",
    "room": "room/living",
    "sheet": "sheet/shown%3Ahall_lamp",
    "device": "device/shown%3Aair",
    "automations": "automations",
    "automation": "automations/hall_light",
    "settings": "settings",
    "wall": "wall",
}
"""Views of the home of twelve devices, by their names in the files."""
IN_DOCS = frozenset(
    {
        *(f"phone-{view}-light" for view in (*FLAT, "empty", "login", "large")),
        *(f"laptop-{view}-light" for view in ("home", "device", "automations", "large")),
        *("phone-home-dark", "tablet-wall-dark"),
    }
)
"""The pictures in docs/dashboard.md; `--to` takes all others."""

SHEET_WIDTHS: Mapping[str, int] = {"phone": 240, "tablet": 320, "laptop": 480, "desktop": 640}
"""Width of one view in a sheet, by size."""
DAY = ((18.9, 20), (18.4, 20), (19.6, 60), (20.2, 35), (19.9, 35), (20.6, 90), (20.1, 75), (19.4, 50))
"""Temperature of the bedroom and brightness of the lamp, every other hour until now."""
STEP_SECS = 7200
PLACED = "[locale]\nlatitude = 52.5\nlongitude = 13.4\n"


async def main() -> None:
    """Take all pictures that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, help="another folder, for pictures of every view, size, and scheme")
    parser.add_argument("parts", nargs="*", help="parts of names: only these pictures")
    asked = parser.parse_args()
    apps.HAS_DASHBOARD = True
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), args=list(SWITCHES))
        async with flat() as app:
            await take(browser, app, asked, FLAT)
        async with open_app(adapters={}) as app:
            await take(browser, app, asked, {"empty": ""})
            await take(browser, app, asked, {"login": ""}, token=None)
        async with open_app(adapters={}) as app:
            await large(app, 120)
            await take(browser, app, asked, {"large": ""})
        if asked.to and not asked.parts:
            for size in SIZES:
                for scheme in SCHEMES:
                    await sheet(browser, asked.to, size, scheme)
        await browser.close()


@asynccontextmanager
async def flat() -> AsyncIterator[App]:
    """Yield the home of twelve devices after most of a day, in fast motion."""
    clock = JumpingClock(datetime.now(UTC) - timedelta(seconds=STEP_SECS * len(DAY)))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in FILES.items():
            (root / "config" / name).parent.mkdir(parents=True, exist_ok=True)
            (root / "config" / name).write_text(text)
        async with open_app(root=root, adapters={}, clock=clock, toml=PLACED) as app:
            await furnish_flat(app)
            update = app.hub.registry.update_attributes
            for degrees, percent in DAY:
                for name, offset in (("air", 0.0), ("radiator", 0.7)):
                    update(
                        "shown", f"shown:{name}", {"temperature": {"value": round(degrees + offset, 1), "unit": "°C"}}
                    )
                update("shown", "shown:hall_lamp", {"brightness": percent})
                await app.post("/automations/hall_light/execute", {})
                clock.jump(STEP_SECS)
            yield app


async def take(
    browser: Browser, app: App, asked: argparse.Namespace, views: Mapping[str, str], token: str | None = MASTER
) -> None:
    """Take each view in every size and scheme, if it is asked for."""
    for size, (width, height) in SIZES.items():
        for scheme in SCHEMES:
            names = {view: f"{size}-{view}-{scheme}" for view in views}
            wanted = {
                view: name
                for view, name in names.items()
                if (asked.to or name in IN_DOCS) and (not asked.parts or any(part in name for part in asked.parts))
            }
            if not wanted:
                continue
            options: dict[str, Any] = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
            options |= {"locale": "en-GB", "reduced_motion": "reduce"}
            async with visiting(browser, app, **options) as visit:
                await visit.open(token=token)
                for view, name in wanted.items():
                    await picture(visit, views[view], (asked.to or FOLDER) / f"dashboard-{name}.png")


async def picture(visit: Visit, view: str, file: Path) -> None:
    """Take one view."""
    await visit.page.evaluate("(hash) => { location.hash = hash }", f"#/{view}")
    await visit.page.wait_for_timeout(900)
    file.parent.mkdir(parents=True, exist_ok=True)
    await visit.page.screenshot(path=file)


async def sheet(browser: Browser, folder: Path, size: str, scheme: str) -> None:
    """Put all views of a size and scheme into one picture of four columns in docs/."""
    width, views = SHEET_WIDTHS[size], (*FLAT, "empty", "login", "large")
    pictures = "".join(f'<img src="dashboard-{size}-{view}-{scheme}.png" width="{width}">' for view in views)
    style = f"margin:8px;background:#888;display:grid;grid-template-columns:repeat(4,{width}px);gap:8px"
    page_file = folder / "sheet.html"
    page_file.write_text(f'<body style="{style}">{pictures}</body>')
    page = await browser.new_page(viewport={"width": 4 * width + 40, "height": 600})
    await page.goto(page_file.as_uri())
    await page.screenshot(path=FOLDER / f"dashboard-all-{size}-{scheme}.jpg", full_page=True, type="jpeg", quality=60)
    await page.close()
    page_file.unlink()


if __name__ == "__main__":
    asyncio.run(main())
