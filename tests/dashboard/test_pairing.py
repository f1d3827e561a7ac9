"""The page pairs a device by its code, which a person types or scans. The page also shares and removes the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from appliance.adapters.matter.kind import Matter
from appliance.adapters.matter.simulator import MatterSimulator
from tests.adapters.lua_kinds.vendor import Vendor
from tests.dashboard.conftest import visiting
from tests.dashboard.npm import AXE, JSQR, script
from tests.dashboard.test_page import read_qr
from tests.fakes.app import READER, open_app

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

CAMERA = """
navigator.mediaDevices.getUserMedia = async () => document.createElement("canvas").captureStream(1);
HTMLMediaElement.prototype.play = async () => {};
let scans = 0;
globalThis.BarcodeDetector = class {
    async detect() {
        return [{ rawValue: (scans += 1) > 2 ? "MT:Y.K90Q1212EZ0648G00" : "https://other" }];
    }
};
"""
NO_CAMERA = "delete globalThis.BarcodeDetector"


async def test_a_device_is_paired_by_its_code_shared_and_unpaired(browser: Browser) -> None:
    reader = script(JSQR)
    async with MatterSimulator() as server:
        adapters = {"matter": Matter(url=f"ws://127.0.0.1:{server.port}/ws")}
        async with open_app(adapters=adapters) as app, visiting(browser, app, device_scale_factor=2) as visit:
            page = visit.page
            await page.add_init_script(NO_CAMERA)
            await visit.open("#/settings/devices")
            code = page.get_by_label("Pairing code, or text of the QR code")
            await expect(page.get_by_role("button", name="Scan")).to_have_count(0)
            await code.fill("12")
            await page.get_by_role("button", name="Pair", exact=True).click()
            await expect(page.get_by_role("alert")).to_contain_text("code must be 11 or 21 digits")
            await code.fill("3497-011-2332")
            await page.get_by_role("button", name="Pair", exact=True).click()
            await expect(page.get_by_role("status").filter(has_text="Paired: Simulated lamp")).to_be_visible()
            await expect(code).to_have_value("")
            await visit.go("device/matter%3Asim-3%3A1")
            await page.get_by_role("button", name="Identify").click()
            await page.get_by_role("button", name="Share").click()
            dialog = page.get_by_role("dialog", name="Share")
            await expect(dialog).to_contain_text("within 5 minutes")
            await expect(dialog.get_by_role("textbox")).to_have_value("32675421138")
            assert await read_qr(page, reader) == "MT:00000-O913KIOL6UR00"
            await dialog.get_by_role("button", name="Done").click()
            await page.get_by_role("button", name="Unpair").click()
            asked = page.get_by_role("dialog")
            await expect(asked).to_contain_text("Unpair Simulated lamp?")
            await asked.get_by_role("button", name="Unpair").click()
            await expect(page.get_by_role("heading", level=1)).to_have_text("This device does not exist.")
            assert [each["command"] for each in server.asked][1:] == [
                "commission_with_code",
                "device_command",
                "open_commissioning_window",
                "remove_node",
            ]


async def test_a_bridge_returns_its_key_after_its_button_is_pressed(browser: Browser, tmp_path: Path) -> None:
    answers = [[{"error": {"type": 101}}], [{"success": {"username": "abc123"}}]]
    async with Vendor(lambda asked: answers.pop(0) if asked.path == "/api" else {"data": []}) as bridge:
        async with (
            open_app(adapters=f'[adapters.hue]\nbase_url = "{bridge.url}"\n') as app,
            visiting(browser, app) as visit,
        ):
            page = visit.page
            await visit.open("#/settings/devices")
            await expect(page.get_by_label("Pairing code, or text of the QR code")).to_have_count(0)
            await page.get_by_role("button", name="Pair", exact=True).click()
            await expect(page.get_by_role("alert")).to_contain_text("press the button of the bridge")
            await page.get_by_role("button", name="Pair", exact=True).click()
            await expect(page.get_by_role("status").filter(has_text="[adapters.hue]")).to_be_visible()
            line = 'headers = { hue-application-key = "abc123" }'
            await expect(page.get_by_role("textbox", name="hue")).to_have_value(line)
            await expect(page.get_by_role("alert")).to_have_count(0)


async def test_the_camera_reads_the_code_if_the_browser_can(browser: Browser) -> None:
    async with MatterSimulator() as server:
        adapters = {"matter": Matter(url=f"ws://127.0.0.1:{server.port}/ws")}
        async with open_app(adapters=adapters) as app, visiting(browser, app) as visit:
            await visit.page.add_init_script(CAMERA)
            await visit.open("#/settings/devices")
            await visit.page.get_by_role("button", name="Scan").click()
            paired = visit.page.get_by_role("status").filter(has_text="Paired: Simulated lamp")
            await expect(paired).to_be_visible()
            await expect(visit.page.get_by_role("dialog")).to_have_count(0)
            asked = [each["args"]["code"] for each in server.asked if each["command"] == "commission_with_code"]
            assert asked == ["MT:Y.K90Q1212EZ0648G00"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(browser: Browser, scheme: Any) -> None:
    axe = script(AXE)
    async with MatterSimulator() as server:
        adapters = {"matter": Matter(url=f"ws://127.0.0.1:{server.port}/ws")}
        viewport: Any = {"width": 320, "height": 700}
        async with (
            open_app(adapters=adapters) as app,
            visiting(browser, app, color_scheme=scheme, viewport=viewport) as visit,
        ):
            await visit.page.add_init_script(CAMERA.replace("(scans += 1) > 2", "false"))
            await visit.open("#/settings/devices")
            for view, button in (("settings/devices", "Scan"), ("device/matter%3Asim-1%3A1", "Share")):
                await visit.go(view)
                await visit.page.get_by_role("button", name=button).click()
                await expect(visit.page.get_by_role("dialog")).to_be_visible()
                for _ in ("the dialog", "the view"):
                    await visit.page.evaluate(axe)
                    found = await visit.page.evaluate("axe.run().then((found) => found.violations)")
                    assert [(each["id"], [node["html"][:120] for node in each["nodes"]]) for each in found] == []
                    wide = await visit.page.evaluate("document.documentElement.scrollWidth")
                    assert wide <= 320, (view, wide)
                    await visit.page.keyboard.press("Escape")


async def test_only_an_admin_key_shows_pairing(browser: Browser) -> None:
    async with MatterSimulator() as server:
        adapters = {"matter": Matter(url=f"ws://127.0.0.1:{server.port}/ws")}
        async with open_app(adapters=adapters) as app, visiting(browser, app) as visit:
            await visit.open("#/device/matter%3Asim-1%3A1", token=READER.text)
            await expect(visit.page.get_by_role("heading", level=1)).to_have_text("Simulated lamp")
            await expect(visit.page.get_by_role("button", name="Unpair")).to_have_count(0)
            await visit.go("settings/devices")
            await expect(visit.page.get_by_role("button", name="Pair", exact=True)).to_have_count(0)
