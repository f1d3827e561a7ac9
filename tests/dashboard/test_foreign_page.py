"""A page of another origin, such as another hub's dashboard, works with this hub if CORS allows that origin."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from playwright.async_api import Browser, Page

from appliance.adapters.elgato_lights.simulator import LightSimulator
from tests.dashboard.conftest import PATIENCE_MS
from tests.fakes import process
from tests.fakes.app import LIGHT

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

ASK = """async ({ api, token, calls }) => {
    const answers = [];
    for (const [method, path, body] of calls) {
        try {
            const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
            const answer = await fetch(api + path, { method, headers, body: body && JSON.stringify(body) });
            const text = await answer.text();
            answers.push([answer.status, text && JSON.parse(text)]);
        } catch (error) {
            answers.push([0, String(error)]);
        }
    }
    return answers;
}"""

LISTEN = """({ api, token, byProtocol, room }) => new Promise((done) => {
    const address = api.replace("http", "ws") + "/events";
    const socket = byProtocol
        ? new WebSocket(address, ["lares.events", `bearer.${encodeURIComponent(token)}`])
        : new WebSocket(`${address}?token=${encodeURIComponent(token)}`);
    const headers = { Authorization: `Bearer ${token}` };
    const rename = () => fetch(`${api}/rooms`, { method: "POST", headers, body: JSON.stringify(room) });
    socket.onopen = rename;
    socket.onmessage = ({ data }) => {
        const frame = JSON.parse(data);
        if (!frame.type.startsWith("room.")) return;
        done([socket.protocol, frame]);
        socket.close();
    };
    socket.onerror = () => done(["failed", null]);
})"""

SWITCH = {"capability": "power", "action": "on"}
CALLS: list[tuple[str, str, Any, int]] = [
    ("GET", "/health", None, 200),
    ("GET", "/ready", None, 200),
    ("GET", "/devices", None, 200),
    ("GET", f"/devices?ids={LIGHT}&ids=nothing", None, 200),
    ("GET", f"/devices/{LIGHT}", None, 200),
    ("GET", f"/devices/{LIGHT.replace(':', '%3A')}", None, 200),
    ("GET", "/devices/nothing", None, 404),
    ("POST", f"/devices/{LIGHT}/command", SWITCH, 200),
    ("POST", f"/devices/{LIGHT}/command", {"capability": "power", "action": "burn"}, 400),
    ("POST", "/rooms", {"id": "den", "name": "Den"}, 200),
    ("GET", "/rooms", None, 200),
    ("GET", "/rooms/den", None, 200),
    ("POST", f"/devices/{LIGHT}/room", {"room_id": "den"}, 200),
    ("GET", "/rooms/den/devices", None, 200),
    ("POST", "/rooms/den/command", SWITCH, 200),
    ("POST", "/groups", {"id": "all", "name": "All", "members": [LIGHT]}, 200),
    ("GET", "/groups", None, 200),
    ("POST", "/groups/all/members", {"members": [LIGHT, LIGHT]}, 200),
    ("GET", "/groups/all/devices", None, 200),
    ("POST", "/groups/all/command", SWITCH, 200),
    ("DELETE", "/groups/all", None, 204),
    ("GET", "/scenes", None, 200),
    ("POST", "/scenes/calm/execute", None, 200),
    ("GET", "/scenes/calm/history", None, 200),
    ("POST", "/scenes/reload", None, 200),
    ("GET", "/automations", None, 200),
    ("GET", "/automations/hourly", None, 200),
    ("POST", "/automations/hourly/enabled", {"enabled": False}, 200),
    ("POST", "/automations/hourly/execute", {}, 200),
    ("POST", "/automations/hourly/validate", None, 200),
    ("GET", "/automations/hourly/history", None, 200),
    ("POST", "/automations/reload", None, 200),
    ("POST", "/scripts/reload", None, 200),
    ("GET", "/adapters", None, 200),
    ("GET", "/adapters/elgato_lights", None, 200),
    ("GET", "/capabilities", None, 200),
    ("GET", f"/devices/{LIGHT}/history", None, 200),
    ("GET", f"/devices/{LIGHT}/history/power?limit=5", None, 200),
    ("GET", "/audit/commands", None, 200),
    ("GET", "/diagnostics", None, 200),
    ("GET", "/diagnostics/reload_watch", None, 200),
    ("POST", "/auth/keys", {"label": "page", "role": "read"}, 200),
    ("GET", "/auth/keys", None, 200),
]
"""Requests of clients of the reference hub, and the statuses in specification and contract."""


async def _show_nothing(_: web.Request) -> web.Response:
    return web.Response(text="<!doctype html><title>x</title>", content_type="text/html")


@asynccontextmanager
async def origin() -> AsyncIterator[str]:
    """Provide an empty page of another origin."""
    app = web.Application()
    app.router.add_get("/", _show_nothing)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def at_home(tmp_path: Path, allowed: str) -> AsyncIterator[process.Process]:
    """Provide a hub that has a light, a scene, and an automation, and that accepts pages of this origin."""
    async with LightSimulator() as light:
        cors = f'[api.cors]\nenabled = true\nallowed_origins = ["{allowed}"]\n'
        process.configure(tmp_path, cors + process.light_section(light.url))
        texts = {
            "scenes/calm": f'id = "calm", name = "C", execute = function(ctx) ctx:get_device("{LIGHT}") end',
            "automations/hourly": 'id = "hourly", name = "H", trigger = { type = "interval", every_secs = 3600 }, '
            "execute = function() end",
        }
        for name, text in texts.items():
            file = tmp_path / "config" / f"{name}.lua"
            file.parent.mkdir(parents=True)
            file.write_text(f"return {{ {text} }}")
        async with process.running(tmp_path) as hub:
            await hub.ready()
            yield hub


async def _open(browser: Browser, address: str) -> Page:
    page = await browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    await page.goto(address)
    return page


async def test_requests_of_reference_clients_work_across_origins(browser: Browser, tmp_path: Path) -> None:
    async with origin() as there, at_home(tmp_path, there) as hub:
        page = await _open(browser, there)
        calls = [call[:3] for call in CALLS]
        reported = await page.evaluate(ASK, {"api": hub.url, "token": process.KEY, "calls": calls})
        wrong = [(call, answer) for call, answer in zip(CALLS, reported, strict=True) if answer[0] != call[3]]
        assert not wrong
        by_path = {
            path: body for (_, path, _, status), (_, body) in zip(CALLS, reported, strict=True) if status == 200
        }
        assert [each["id"] for each in by_path["/rooms/den/devices"]] == [LIGHT]
        assert by_path["/groups/all/members"]["members"] == [LIGHT]
        assert by_path["/audit/commands"]["entries"][0]["command"] == SWITCH
        for by_protocol in (False, True):
            room = {"id": "den", "name": f"Den {by_protocol}"}
            asked = {"api": hub.url, "token": process.KEY, "byProtocol": by_protocol, "room": room}
            protocol, frame = await page.evaluate(LISTEN, asked)
            assert (protocol, frame) == (
                "lares.events" if by_protocol else "",
                {"type": "room.updated", "room": room},
            )
        await page.close()


async def test_a_page_of_an_unknown_origin_reads_nothing(browser: Browser, tmp_path: Path) -> None:
    async with origin() as there, at_home(tmp_path, "http://192.0.2.1") as hub:
        page = await _open(browser, there)
        reported = await page.evaluate(
            ASK,
            {"api": hub.url, "token": process.KEY, "calls": [["GET", "/devices", None], ["GET", "/health", None]]},
        )
        assert [status for status, _ in reported] == [0, 0]
        await page.close()
