"""`lares notify`: a message through a section of the hub that runs, and what came of it in words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from tests.cli.test_reports import asked
from tests.fakes.process import configure, lares, running

TOKEN = "token-of-the-telephone"


@asynccontextmanager
async def home(folder: Path, status: int) -> AsyncIterator[list[tuple[str, str]]]:
    """A hub with a section that a server of loopback answers with this status: the paths and bodies it received."""
    received: list[tuple[str, str]] = []

    async def receive(request: web.Request) -> web.Response:
        received.append((request.raw_path, await request.text()))
        return web.Response(status=status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receive)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        section = f'[adapters.phone]\ntype = "notify"\nurl = "http://127.0.0.1:{port}/{{token}}"\ntoken = "{TOKEN}"\n'
        configure(folder, section + 'body = "{title}: {message}"\nmax_per_hour = 1\n')
        async with running(folder) as hub:
            await hub.ready()
            yield received
    finally:
        await runner.cleanup()


async def test_a_message_is_sent_or_gathered_and_a_wrong_section_is_named(tmp_path: Path) -> None:
    async with home(tmp_path, 204) as received:
        sent = await asked(tmp_path, "notify", "phone", "It 'works' \x1b[31m", "--title", "Try")
        assert (sent.returncode, sent.stdout, sent.stderr) == (0, "phone: sent\n", "")
        assert received == [(f"/{TOKEN}", "Try: It 'works' \x1b[31m")]
        unknown = await asked(tmp_path, "notify", "fone", "x")
        assert (unknown.returncode, unknown.stdout) == (67, "") and "adapter 'fone' not found" in unknown.stderr
        assert (await asked(tmp_path, "notify", "phone", "two")).stdout == "phone: gathered\n"
        assert len(received) == 1
        assert (await asked(tmp_path, "notify", "phone:send", "three")).stdout == "phone:send: gathered\n"
        other = await asked(tmp_path, "notify", "phone:ring", "x")
        assert other.returncode == 70 and "invoke target 'phone:ring' is not supported" in other.stderr
    nobody = lares(tmp_path, "notify", "phone", "x")
    assert nobody.returncode == 69 and "`lares run` starts one" in nobody.stderr


@pytest.mark.slow
async def test_a_failure_names_what_was_wrong_and_never_the_token(tmp_path: Path) -> None:
    async with home(tmp_path, 503) as received:
        failed = await asked(tmp_path, "notify", "phone", "It works")
        assert failed.returncode == 69 and "three tries failed" in failed.stderr and "503" in failed.stderr
        assert TOKEN not in failed.stderr and len(received) == 3
        assert TOKEN not in (await asked(tmp_path, "log")).stdout
        for arguments, sentence in (
            (("phone", " "), "needs a message"),
            (("phone", "x" * 5000), "4096 characters"),
            (("phone",), "TEXT"),
        ):
            refused = await asked(tmp_path, "notify", *arguments)
            assert refused.returncode == 64 and refused.stdout == "", (arguments, refused)
            assert sentence in refused.stderr and "Traceback" not in refused.stderr, (arguments, refused.stderr)
