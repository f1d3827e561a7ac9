"""Attacks over the network on a hub as a process, behind a proxy that it trusts: refused, and nobody else is hurt."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.fakes.process import KEY, Process, configure, running
from tests.journeys.test_attacks import Home

pytestmark = pytest.mark.slow

HALF_OPEN = 620
BAD_IDS = (".", "..", "a\u202eb", "a\x1b[31m", "a\u200bb", "\x00", "", " ", "x" * 900_000)
PROXIED = '[api]\nbind_address = "127.0.0.1:0"\ntrusted_proxies = ["127.0.0.1"]\n'


@asynccontextmanager
async def behind_proxy(folder: Path) -> AsyncIterator[Process]:
    """A hub that believes its neighbour on loopback to be a proxy."""
    configure(folder)
    (folder / "config" / "default.toml").write_text(PROXIED)
    async with running(folder) as hub:
        await hub.ready()
        yield hub
        assert await hub.stop() == 0
        assert "Traceback" not in hub.log.read_text()


async def raw(hub: Process, *lines: str, body: str = "") -> tuple[int, str]:
    """The status and the body of the answer to these lines of a request."""
    address = urlsplit(hub.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(("\r\n".join([*lines, "Host: x", "Connection: close"]) + f"\r\n\r\n{body}").encode())
        async with asyncio.timeout(30):
            head, _, rest = (await reader.read()).decode(errors="replace").partition("\r\n\r\n")
        return int(head.split()[1]), rest
    finally:
        writer.close()


async def test_one_request_with_two_keys_or_two_origins_is_refused(tmp_path: Path) -> None:
    mine, none = f"Authorization: Bearer {KEY}", "Authorization: Bearer nothing"
    async with behind_proxy(tmp_path) as hub:
        for headers in ((mine, none), (none, mine), (mine, mine)):
            status, body = await raw(hub, "GET /devices HTTP/1.1", *headers)
            assert status in (400, 401) and json.loads(body)["error"], (headers, status, body)
        assert (await raw(hub, f"GET /devices?token={KEY} HTTP/1.1"))[0] == 401
        for stated in ("X-Forwarded-For: 10.0.0.1, nonsense", "Forwarded: for=", "X-Forwarded-For: " + "9" * 4000):
            assert (await raw(hub, "GET /devices HTTP/1.1", mine, stated))[0] == 200, stated
        both = ("X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.2")
        assert (await raw(hub, "GET /devices HTTP/1.1", mine, *both))[0] == 200


async def test_ids_that_mislead_are_refused_and_kept_nowhere(tmp_path: Path) -> None:
    async with behind_proxy(tmp_path) as hub:
        for id_ in BAD_IDS:
            for path in ("/rooms", "/groups"):
                status, answer = await hub.ask("POST", path, {"id": id_, "name": "x"})
                assert status in (400, 413) and answer["error"].isprintable(), (id_[:20], status, answer)
        assert await hub.get("/rooms") == await hub.get("/groups") == []


async def test_half_open_requests_of_one_client_of_the_proxy_shut_out_nobody_else(tmp_path: Path) -> None:
    async with behind_proxy(tmp_path) as hub:
        home, wrong, address = Home(hub, tmp_path), list[str](), urlsplit(hub.url)
        before, writers = home.memory_bytes(), []
        async with home.watched(wrong, "half-open requests"):
            for number in range(HALF_OPEN):
                _, writer = await asyncio.open_connection(address.hostname, address.port)
                head = (
                    f"POST /rooms HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nX-Forwarded-For: 10.6.6.6\r\n"
                )
                writer.write((head + f"Content-Length: 100000\r\n\r\n{number}").encode())
                writers.append(writer)
            began = time.monotonic()
            other = f"Authorization: Bearer {KEY}", "X-Forwarded-For: 10.0.0.7"
            assert (await raw(hub, "GET /devices HTTP/1.1", *other))[0] == 200
            print(f"another client was answered after {time.monotonic() - began:.3f} s")
            same = f"Authorization: Bearer {KEY}", "X-Forwarded-For: 10.6.6.6"
            assert (await raw(hub, "GET /devices HTTP/1.1", *same))[0] == 429
            for writer in writers:
                writer.close()
        assert wrong == [] and home.memory_bytes() - before < 60 << 20
        await asyncio.sleep(1)
        assert (await raw(hub, "GET /devices HTTP/1.1", *same))[0] == 200


async def test_a_stream_says_that_it_lives_and_ends_with_its_key(tmp_path: Path) -> None:
    async with behind_proxy(tmp_path) as hub:
        _, made = await hub.ask("POST", "/auth/keys", {"label": "page", "role": "read"})
        url = f"{hub.url}/events?heartbeat_secs=1"
        headers = {"Authorization": f"Bearer {made['key']}"}
        async with hub.session.ws_connect(url, headers=headers) as socket, asyncio.timeout(30):
            beats = [(await socket.receive_json())["type"] for _ in range(2)]
            assert len(set(beats)) == 1 and "heartbeat" in beats[0], beats
            assert (await hub.ask("DELETE", f"/auth/keys/{made['id']}"))[0] == 204
            while not (await socket.receive()).type.name.startswith("CLOS"):
                pass
            assert socket.close_code == 1008
