"""CORS: pages of allowed origins may read all answers; other pages may not read any answer."""

from __future__ import annotations

import re

import pytest

from appliance.api.app import ROUTES
from appliance.api.limits import ApiLimits
from appliance.settings import RateLimit
from tests.api.caller import KEY, UPGRADE, Reply, call, request
from tests.fakes.app import MASTER, App, open_app

ORIGIN, OTHER = "http://panel.local:8080", "https://home.example"
ALLOWED = frozenset({ORIGIN, OTHER})
ON = ApiLimits(origins=ALLOWED)

ASKS = ("Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization,content-type")

FOREIGN = [
    "http://panel.local",
    "http://panel.local:80",
    "http://panel.local:8081",
    "https://panel.local:8080",
    "http://PANEL.local:8080",
    "http://panel.local:8080/",
    "http://panel.local:8080.evil.example",
    "http://evil.example?http://panel.local:8080",
    "http://sub.panel.local:8080",
    "null",
    "*",
    "",
    f"{ORIGIN}, {OTHER}",
    f"{ORIGIN} {OTHER}",
]


async def ask(app: App, method: str, path: str, *headers: str, body: bytes | None = None) -> Reply:
    """Send one request on a separate connection."""
    async with call(app.url) as caller:
        return await caller.ask(request(method, path, *headers, body=body))


def allowed(reply: Reply) -> str | None:
    """Return the origin that may read the answer."""
    return reply.header("access-control-allow-origin")


CASES = [
    ("GET", "/devices", KEY, None, 200),
    ("GET", "/health", "X: y", None, 200),
    ("GET", "/devices", "X: y", None, 401),
    ("GET", "/nothing", "X: y", None, 401),
    ("GET", "/nothing", KEY, None, 404),
    ("GET", "/devices/nothing", KEY, None, 404),
    ("PATCH", "/devices", KEY, None, 405),
    ("POST", "/rooms", KEY, b"{", 400),
    ("POST", "/rooms", KEY, b" " * (1 << 20) + b"{}", 413),
    ("GET", "/events", KEY, None, 426),
    ("HEAD", "/devices", KEY, None, 200),
    ("OPTIONS", "/devices", KEY, None, 405),
    ("OPTIONS", "/devices", "X: y", None, 401),
]


async def test_every_answer_names_the_allowed_origin_and_no_other() -> None:
    async with open_app(limits=ON) as app:
        for method, path, key, body, status in CASES:
            for origin in (ORIGIN, OTHER):
                reply = await ask(app, method, path, key, f"Origin: {origin}", body=body)
                assert (reply.status, allowed(reply)) == (status, origin), (method, path)
                assert reply.header("vary") == "Origin"
                assert reply.header("access-control-expose-headers") == "Retry-After"
                assert reply.header("access-control-allow-credentials") is None
            for headers in ([f"Origin: {FOREIGN[0]}"], []):
                reply = await ask(app, method, path, key, *headers, body=body)
                assert (reply.status, allowed(reply), reply.header("vary")) == (status, None, "Origin"), (
                    method,
                    path,
                )


async def test_answers_without_a_body_and_of_limited_keys_name_the_origin() -> None:
    limits = ApiLimits(origins=ALLOWED, rate=RateLimit(enabled=True, requests_per_second=0.001, burst_size=2))
    async with open_app(limits=limits) as app:
        assert (await app.post("/rooms", {"id": "den", "name": "Den"})).status == 200
        for status in (204, 429):
            reply = await ask(app, "DELETE", "/rooms/den", KEY, f"Origin: {ORIGIN}")
            assert (reply.status, allowed(reply), reply.header("vary")) == (status, ORIGIN, "Origin")


@pytest.mark.parametrize(
    ("header", "origin"), [("Transfer-Encoding: chunked", ORIGIN), ("Content-Length: nonsense", None)]
)
async def test_the_answer_to_a_malformed_body_names_the_origin_and_to_a_malformed_head_none(
    header: str, origin: str | None
) -> None:
    async with open_app(limits=ON) as app, call(app.url) as caller:
        reply = await caller.ask(request("POST", "/rooms", KEY, f"Origin: {ORIGIN}", header) + b"nonsense\r\n\r\n")
        assert (reply.status, allowed(reply), reply.header("vary")) == (400, origin, "Origin")


async def test_an_origin_must_equal_an_allowed_one() -> None:
    async with open_app(limits=ON) as app:
        for origin in FOREIGN:
            reply = await ask(app, "GET", "/devices", KEY, f"Origin: {origin}")
            assert (reply.status, allowed(reply)) == (200, None), origin
            preflight = await ask(app, "OPTIONS", "/devices", f"Origin: {origin}", *ASKS)
            assert (preflight.status, allowed(preflight)) == (401, None), origin


async def test_two_origins_count_as_no_origin() -> None:
    async with open_app(limits=ON) as app:
        reply = await ask(app, "GET", "/devices", KEY, f"Origin: {ORIGIN}", f"Origin: {OTHER}")
        assert (reply.status, allowed(reply)) == (200, None)


PATHS = sorted({re.sub(r"<\w+>", "nothing", route.path) for route in ROUTES})


@pytest.mark.slow
async def test_a_preflight_needs_no_key_and_is_the_same_for_every_path() -> None:
    async with open_app(limits=ON) as app:
        for path in (*PATHS, "/no/such/path", "/"):
            for more in ((), ("Authorization: Bearer nonsense",), (KEY,)):
                reply = await ask(app, "OPTIONS", path, f"Origin: {ORIGIN}", *ASKS, *more)
                assert (reply.status, reply.body) == (204, b"")
                assert dict(reply.headers) == {
                    "access-control-allow-origin": ORIGIN,
                    "access-control-allow-methods": "DELETE, GET, HEAD, POST, PUT",
                    "access-control-allow-headers": "authorization, content-type",
                    "access-control-expose-headers": "Retry-After",
                    "access-control-max-age": "600",
                    "vary": "Origin",
                    "connection": "keep-alive",
                }


async def test_without_cors_no_header_mentions_it() -> None:
    async with open_app() as app:
        for method, key, status in (("GET", KEY, 200), ("GET", "X: y", 401), ("OPTIONS", "X: y", 401)):
            reply = await ask(app, method, "/devices", key, f"Origin: {ORIGIN}", *ASKS)
            assert reply.status == status
            assert not [name for name, _ in reply.headers if name == "vary" or name.startswith("access-control")]


async def test_without_an_allowed_origin_every_origin_is_foreign() -> None:
    async with open_app(limits=ApiLimits(origins=frozenset())) as app:
        reply = await ask(app, "OPTIONS", "/devices", f"Origin: {ORIGIN}", *ASKS)
        assert (reply.status, allowed(reply), reply.header("vary")) == (401, None, "Origin")


@pytest.mark.parametrize("limits", [ApiLimits(), ON], ids=["off", "on"])
async def test_a_websocket_needs_only_the_key_whatever_its_origin(limits: ApiLimits) -> None:
    async with open_app(limits=limits) as app:
        for origin in (ORIGIN, "http://evil.example"):
            reply = await ask(app, "GET", f"/events?token={MASTER}", *UPGRADE, f"Origin: {origin}")
            assert reply.status == 101
            reply = await ask(app, "GET", "/events?token=wrong", *UPGRADE, f"Origin: {origin}")
            assert reply.status == 401


async def test_a_page_whose_name_resolves_to_the_hub_reads_nothing_that_needs_a_key(app: App) -> None:
    async with call(app.url) as caller:
        for path in ("/health", "/ready"):
            asked = request("GET", path, "Origin: http://evil.example").replace(b"Host: lares", b"Host: evil.example")
            reply = await caller.ask(asked)
            assert (reply.status, reply.json) == (200, {"status": "ok"})
            assert reply.header("access-control-allow-origin") is None
    headers = {"Host": "evil.example", "Origin": "http://evil.example"}
    answer = await app.get("/devices", token=None, headers=headers)
    assert (answer.status, answer.json["code"]) == (401, "authentication_required")
