"""What `[api]` says of limits and origins holds in the hub that it was written for."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from appliance import config
from appliance.api.connections import ApiLimits
from tests.api.caller import call, request
from tests.fakes.process import KEY, running

MINE = f"Authorization: Bearer {KEY}"
PANEL = "http://panel.local"


def configure(folder: Path, text: str) -> None:
    """A box whose `[api]` begins with this."""
    (folder / "config").mkdir()
    (folder / "config" / "default.toml").write_text(f'[api]\nbind_address = "127.0.0.1:0"\n{text}')


def test_without_a_word_the_limits_are_the_contracts_and_rate_and_cors_are_off() -> None:
    assert ApiLimits.of(config.parse("", "x", {}).api) == ApiLimits()
    assert ApiLimits().rate is None and ApiLimits().origins is None


def test_what_is_configured_but_not_enabled_is_off() -> None:
    text = f'[api.rate_limit]\nburst_size = 1\n[api.cors]\nallowed_origins = ["{PANEL}"]\n'
    assert ApiLimits.of(config.parse(text, "x", {}).api) == ApiLimits()


@pytest.mark.parametrize("key", ["max_connections", "max_connections_per_peer"])
async def test_more_connections_than_are_configured_are_closed_at_once(tmp_path: Path, key: str) -> None:
    configure(tmp_path, f"{key} = 4\n")
    async with running(tmp_path) as hub, AsyncExitStack() as stack:
        callers = [await stack.enter_async_context(call(hub.url)) for _ in range(4)]
        for caller in callers:
            assert (await caller.ask(request("GET", "/health"))).status == 200
        async with call(hub.url) as refused:
            assert await refused.rest() == b""
        assert (await callers[0].ask(request("GET", "/health"))).status == 200


async def test_a_key_may_write_as_often_as_is_configured(tmp_path: Path) -> None:
    configure(tmp_path, "[api.rate_limit]\nenabled = true\nrequests_per_second = 0.001\nburst_size = 3\n")
    async with running(tmp_path) as hub:
        statuses = [await hub.post("/rooms", id="den", name="Den") for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]


async def test_pages_of_a_configured_origin_are_let_in_and_no_others(tmp_path: Path) -> None:
    configure(tmp_path, f'[api.cors]\nenabled = true\nallowed_origins = ["{PANEL}"]\n')
    async with running(tmp_path) as hub, call(hub.url) as caller:
        for origin, named in ((PANEL, PANEL), ("http://other.local", None)):
            reply = await caller.ask(request("GET", "/devices", MINE, f"Origin: {origin}"))
            assert (reply.status, reply.header("access-control-allow-origin")) == (200, named)
