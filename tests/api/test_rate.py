"""The rate limit: each key has a bucket that counts certain requests."""

from __future__ import annotations

import asyncio
from functools import partial

from appliance.api.app import ROUTES
from appliance.api.limits import ApiLimits
from appliance.api.rate_limit import MAX_KEPT_BUCKETS, Buckets
from appliance.clock import Clock
from appliance.errors import RateLimited
from appliance.settings import RateLimit
from tests.fakes.app import LIGHT, MASTER, READER, App, open_app
from tests.fakes.clock import VirtualClock

TEN = RateLimit(enabled=True, requests_per_second=10, burst_size=3)
TWO_AT_ALL = RateLimit(enabled=True, requests_per_second=0.001, burst_size=2)


def take(buckets: Buckets, times: int, key_id: str = "a") -> list[float]:
    """Take from the bucket repeatedly. Return the seconds to wait for each attempt, or 0 for an allowed attempt."""
    received = []
    for _ in range(times):
        try:
            buckets.take(key_id)
            received.append(0.0)
        except RateLimited as refused:
            received.append(round(refused.wait_secs, 6))
    return received


async def test_a_full_bucket_allows_a_burst_and_then_returns_the_time_to_wait() -> None:
    assert take(Buckets(TEN, VirtualClock()), 5) == [0, 0, 0, 0.1, 0.1]


async def test_a_bucket_fills_with_time_up_to_its_burst() -> None:
    clock = VirtualClock()
    buckets = Buckets(TEN, clock)
    assert take(buckets, 4) == [0, 0, 0, 0.1]
    await clock.advance(0.05, sleepers=0)
    assert take(buckets, 1) == [0.05]
    await clock.advance(0.05, sleepers=0)
    assert take(buckets, 2) == [0, 0.1]
    await clock.advance(0.2, sleepers=0)
    assert take(buckets, 3) == [0, 0, 0.1]
    await clock.advance(3600, sleepers=0)
    assert take(buckets, 4) == [0, 0, 0, 0.1]


async def test_each_key_has_its_own_bucket() -> None:
    buckets = Buckets(TEN, VirtualClock())
    assert take(buckets, 4, "a") == [0, 0, 0, 0.1]
    assert take(buckets, 4, "b") == [0, 0, 0, 0.1]


async def test_without_a_limit_no_request_waits() -> None:
    assert take(Buckets(None, VirtualClock()), 10_000) == [0] * 10_000


async def test_full_buckets_are_removed() -> None:
    clock = VirtualClock()
    buckets = Buckets(TEN, clock)
    for number in range(10 * MAX_KEPT_BUCKETS):
        assert take(buckets, 1, f"key-{number}") == [0]
        await clock.advance(0.001, sleepers=0)
    assert len(buckets._full_at) <= MAX_KEPT_BUCKETS


def test_writes_and_hooks_count_except_keys_and_reloads() -> None:
    free = {(row.method, row.path) for row in ROUTES if not row.is_rate_limited and row.method != "GET"}
    assert free == {
        ("POST", "/auth/keys"),
        ("DELETE", "/auth/keys/<key_id>"),
        ("POST", "/auth/master"),
        *(("POST", f"/{each}/reload") for each in ("scenes", "automations", "scripts", "adapters", "diagnostics")),
    }
    assert [row.path for row in ROUTES if row.is_rate_limited and row.method == "GET"] == ["/hooks/<hook_id>"]


class TestOverHttp:
    """A hub in which a key may write twice in a quarter of an hour."""

    open = staticmethod(partial(open_app, limits=ApiLimits(rate=TWO_AT_ALL)))

    async def spend(self, app: App, token: str = MASTER) -> None:
        """Create a room as often as the key's rate limit allows."""
        for _ in range(TWO_AT_ALL.burst_size):
            assert (await app.post("/rooms", {"id": "den", "name": "Den"}, token=token)).status == 200

    async def test_beyond_the_limit_the_answer_is_429_with_a_time(self) -> None:
        async with self.open() as app:
            await self.spend(app)
            answer = await app.post("/rooms", {"id": "hall", "name": "Hall"})
            assert (answer.status, answer.json) == (429, {"error": "rate limit exceeded", "code": "rate_limited"})
            assert 900 <= int(answer.headers["Retry-After"]) <= 1000
            assert (await app.get("/rooms/hall")).status == 404

    async def test_reading_and_managing_keys_is_never_limited(self) -> None:
        async with self.open() as app:
            await self.spend(app)
            for _ in range(5):
                assert (await app.get("/devices")).status == 200
            made = await app.post("/auth/keys", {"label": "x", "role": "write"})
            assert made.status == 200
            assert (await app.delete(f"/auth/keys/{made.json['id']}")).status == 204
            assert (await app.get("/rooms")).status == 200

    async def test_the_limit_is_checked_after_key_role_path_and_method_and_before_resource_and_body(self) -> None:
        async with self.open() as app:
            await self.spend(app)
            for method, path, token, status in (
                ("POST", "/rooms", "nobody's", 401),
                ("POST", "/rooms", READER.text, 403),
                ("POST", "/no/such/path", MASTER, 404),
                ("PATCH", "/rooms", MASTER, 405),
                ("POST", "/devices/nothing/command", MASTER, 429),
                ("DELETE", "/rooms/nothing", MASTER, 429),
                ("POST", f"/devices/{LIGHT}/command", MASTER, 429),
                ("POST", "/rooms", MASTER, 429),
            ):
                assert (await app.ask(method, path, data=b"{", token=token)).status == status, (method, path)

    async def test_a_burst_at_once_is_counted_one_by_one(self) -> None:
        async with self.open() as app:
            asked = [app.post("/rooms", {"id": f"r{number}", "name": "R"}) for number in range(8)]
            statuses = sorted(answer.status for answer in await asyncio.gather(*asked))
            assert statuses == [200] * 2 + [429] * 6

    async def test_the_hubs_own_clock_fills_the_bucket(self) -> None:
        quick = RateLimit(enabled=True, requests_per_second=1000, burst_size=1)
        async with open_app(limits=ApiLimits(rate=quick), clock=Clock()) as app:
            async with asyncio.timeout(10):
                done = 0
                while done < 5:
                    done += (await app.post("/rooms", {"id": "den", "name": "Den"})).status == 200
