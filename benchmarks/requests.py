"""Requests a second, beside a bare Sanic that answers the same bytes without key, home or devices."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

from appliance.adapters.elgato_lights.simulator import Light, LightSimulator
from benchmarks._client import hammer, one, request, until_ready
from benchmarks._processes import Running, ask, free_port, hub

CLIENTS = 16
SECONDS = 3.0
DEVICES = 100

FLOOR = """
import asyncio, sys
from sanic import Sanic
from sanic.response import raw
body = sys.stdin.buffer.read()
app = Sanic("floor", configure_logging=False)
@app.get("/")
async def answer(request):
    return raw(body, content_type="application/json")
async def main():
    server = await app.create_server("127.0.0.1", int(sys.argv[1]))
    await server.startup()
    await server.serve_forever()
asyncio.run(main())
"""


def measure() -> Iterator[tuple[str, str]]:
    """Labels and figures."""
    yield from asyncio.run(_measure())


async def _measure() -> list[tuple[str, str]]:
    async with LightSimulator(lights=[Light(temperature=213) for _ in range(DEVICES)]) as lamp:
        adapters = f'[adapters.elgato_lights]\nbase_url = "{lamp.url}"\npoll_interval_secs = 3600\n'
        running = hub(adapters)
        home = await asyncio.to_thread(running.__enter__)
        try:
            return await _figures(home)
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)


async def _figures(home: Running) -> list[tuple[str, str]]:
    await until_ready(home.port)
    figures = []
    for label, path in ((f"GET {DEVICES} devices", "/devices"), ("GET one device", "/devices/elgato_lights:light:0")):
        body = await one(home.port, request("GET", path))
        rate, slowest = await hammer(home.port, request("GET", path), clients=CLIENTS, seconds=SECONDS)
        floor = await asyncio.to_thread(_floor, body)
        what = f"{label}, {CLIENTS} clients, requests/s (p99 of a batch of 8, ms)"
        figures.append((what, f"{rate:.0f} ({slowest:.1f})"))
        figures.append(("  bare Sanic with the same bytes, requests/s", f"{floor:.0f}"))
        figures.append(("  ratio", f"{rate / floor:.2f}"))
    return figures


def _floor(body: bytes) -> float:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", FLOOR, str(port)], stdin=subprocess.PIPE)
    assert process.stdin is not None
    try:
        process.stdin.write(body)
        process.stdin.close()
        ask(port, "/")
        return asyncio.run(hammer(port, request("GET", "/"), clients=CLIENTS, seconds=SECONDS))[0]
    finally:
        process.terminate()
        process.wait(10)
