"""Permissions: all routes with all kinds of keys, and the order of the checks."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

import pytest
import pytest_asyncio

from appliance.api.app import ROUTES
from appliance.api.roles import Role
from appliance.api.route import Route
from appliance.api.tokens import KeyToken
from tests.api.caller import KEY, UPGRADE, call, request
from tests.fakes.app import MASTER, READER, App, Received

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIGHT = "elgato_lights:light:0"
GUARDED = [route for route in ROUTES if route.role is not None]
BY_PATH = {route.path: [each for each in ROUTES if each.path == route.path] for route in ROUTES}

REFUSED = (401, {"error": "authentication required", "code": "authentication_required"})
FORBIDDEN = (403, {"error": "insufficient permissions", "code": "insufficient_permissions"})

WRONG = {
    "no token": None,
    "an empty header": "",
    "no scheme": MASTER,
    "another scheme": f"Basic {MASTER}",
    "a scheme that only begins like it": f"BearerX {MASTER}",
    "a scheme without a token": "Bearer",
    "a scheme with blanks": "Bearer   ",
    "a colon": f"Bearer: {MASTER}",
    "a wrong token": "Bearer nobody-knows-this-one",
    "part of the master key": f"Bearer {MASTER[:-1]}",
    "more than the master key": f"Bearer {MASTER}x",
    "the master key in capitals": f"Bearer {MASTER.upper()}",
    "two tokens": f"Bearer {MASTER} {MASTER}",
    "an unknown key id": f"Bearer {KeyToken.make('nobody').text}",
    "a wrong secret of a key that exists": f"Bearer lrs_{READER.key_id}_{secrets.token_urlsafe(32)}",
    "a key id without a secret": f"Bearer lrs_{READER.key_id}_",
    "bytes that are no text": "Bearer \udcff\udcfe",
}
"""Headers that grant no permission."""


def path_of(route: Route) -> str:
    """Return a path of the route. The ids in the path do not exist."""
    return re.sub(r"<\w+>", "nothing", route.path)


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


def of(answer: Received) -> tuple[int, object]:
    return answer.status, answer.json


async def ask(app: App, route: Route, authorization: str | None) -> Received:
    """Send a request whose body no route accepts, so that the request changes nothing."""
    headers = {} if authorization is None else {"Authorization": authorization}
    data = None if route.body is None else b"not JSON"
    return await app.ask(route.method, path_of(route), data=data, token=None, headers=headers)


@pytest.mark.parametrize("what", WRONG)
async def test_invalid_keys_open_public_routes_only(shared: App, what: str) -> None:
    wrong = []
    for route in {route.role: route for route in ROUTES}.values():  # the matrix below covers all routes
        answer = await ask(shared, route, WRONG[what])
        is_refused = of(answer) == REFUSED and answer.headers["WWW-Authenticate"] == "Bearer"
        is_right = answer.status in route.statuses if route.role is None else is_refused
        wrong += [] if is_right else [(name_of(route), of(answer))]
    assert not wrong


async def test_a_missing_permission_has_no_authentication_challenge(shared: App) -> None:
    answer = await shared.get("/diagnostics", token=READER.text)
    assert of(answer) == FORBIDDEN and "WWW-Authenticate" not in answer.headers


WRITTEN = {"devices", "rooms", "groups", "scenes", "automations", "executions", "variables", "timers", "preferences"}

MAY: dict[Role, Callable[[Route], bool]] = {
    Role.READ: lambda route: (
        route.method == "GET"
        and not route.path.startswith(("/diagnostics", "/auth/keys", "/hooks", "/discovery"))
        and not route.path.startswith(("/files", "/completions", "/recipes"))
    ),
    Role.WRITE: lambda route: (
        MAY[Role.READ](route) or (route.path.split("/")[1] in WRITTEN and not route.path.endswith("/reload"))
    ),
    Role.ADMIN: lambda route: True,
    Role.AUTOMATION: lambda route: True,
    Role.HOOK: lambda route: route.path.startswith("/hooks"),
}
"""Sentences about roles in the contract."""


SORTS = ["no token", "a wrong one", "a malformed one", "of a revoked key", "the master key", *Role]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tokens(shared: App) -> dict[str, str | None]:
    """Create keys of all kinds over HTTP, and return their tokens."""

    async def make(label: str, role: Role) -> tuple[str, str]:
        of_hook = {"hook": "nothing"} if role is Role.HOOK else {}
        made = (await shared.post("/auth/keys", {"label": label, "role": role, **of_hook})).json
        return made["id"], made["key"]

    revoked_id, revoked = await make("revoked", Role.ADMIN)
    assert (await shared.get("/devices", token=revoked)).status == 200
    assert (await shared.delete(f"/auth/keys/{revoked_id}")).status == 204
    right = {role.value: (await make(role, role))[1] for role in Role}
    wrong = right[Role.ADMIN][:-43] + secrets.token_urlsafe(32)
    bad = {"no token": None, "a wrong one": wrong, "a malformed one": "lrs_", "of a revoked key": revoked}
    return {**bad, "the master key": MASTER, **right}


@pytest.mark.parametrize("sort", SORTS)
async def test_the_matrix_of_routes_and_tokens(shared: App, tokens: dict[str, str | None], sort: str) -> None:
    token, wrong = tokens[sort], []
    for route in ROUTES:
        answer = await ask(shared, route, None if token is None else f"Bearer {token}")
        if route.role is None:
            is_right = answer.status in route.statuses
        elif sort in ("the master key", *Role) and MAY[Role(sort) if sort in [*Role] else Role.ADMIN](route):
            is_right = answer.status not in (401, 403)
        else:
            is_right = of(answer) == (FORBIDDEN if sort in [*Role] else REFUSED)
        wrong += [] if is_right else [(name_of(route), of(answer))]
    assert not wrong


def encode(path: str) -> str:
    """Percent-encode all characters except slashes. RFC 3986 treats the result as the same path."""
    return "".join(each if each == "/" else f"%{ord(each):02x}" for each in path)


@pytest.mark.parametrize("sort", ["no token", Role.READ, "the master key"])
async def test_a_percent_encoded_path_has_the_permissions_of_the_path(
    shared: App, tokens: dict[str, str | None], sort: str
) -> None:
    wrong = []
    for route in ROUTES:
        method = "GET" if route.role is None else "NONE"  # the method decides only between 405 and a response
        plain, encoded = [
            await shared.ask(method, path, token=tokens[sort]) for path in (path_of(route), encode(path_of(route)))
        ]
        is_same = (plain.status, plain.headers.get("Allow")) == (encoded.status, encoded.headers.get("Allow"))
        wrong += [] if is_same else [(name_of(route), plain.status, encoded.status)]
    assert not wrong
    answer = await shared.get(encode("/devices"), token=tokens[sort])
    assert of(answer) == of(await shared.get("/devices", token=tokens[sort]))


UNKNOWN = [
    "/dashboard",
    "/auth%2Fkeys",
    "/%2Fdevices",
    "/devices%2F",
    "/%25devices",
    "/%2564evices",
    "/rooms%00",
    "/%3Cdevice_id%3E",
    "/nothing",
    "/devices/",
    "/health/",
    "/ready/",
    "/devices/a/b",
    "//devices",
    "//",
    "///",
    "/Devices",
    "/rooms/a/",
    "/devices%2Fnothing",
    "/devices/../health",
    "/devices%3Fids=x",
]


@pytest.mark.parametrize("path", [*UNKNOWN, "*"])
async def test_an_unknown_path_is_401_without_a_key_and_404_with_one(shared: App, path: str) -> None:
    for method in ("GET", "POST", "DELETE", "HEAD", "OPTIONS", "NONE", "get"):
        async with call(shared.url) as caller:
            refused = await caller.ask(request(method, path))
            assert refused.status == 401 and refused.header("www-authenticate") == "Bearer"
            wrong = await caller.ask(request(method, path, "Authorization: Bearer wrong"))
            assert wrong.status == 401
            found = await caller.ask(request(method, path, KEY))
            assert found.status == 404
            if method != "HEAD":
                assert found.json == {"error": "this path does not exist", "code": "path_not_found"}


@pytest.mark.slow
async def test_a_wrong_method_is_405_and_allow_names_the_right_ones(shared: App) -> None:
    for path, routes in BY_PATH.items():
        methods = {route.method for route in routes}
        allowed = ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
        target = re.sub(r"<\w+>", "nothing", path)
        for method in {"PATCH", "PUT", "OPTIONS", "TRACE", "NONE"} - methods:
            answer = await shared.ask(method, target)
            message = f"this path does not support {method}, only {allowed}"
            sentence = {"error": message, "code": "method_not_allowed"}
            assert of(answer) == (405, sentence), path
            assert answer.headers["Allow"] == allowed, path
        assert (await shared.ask("NONE", target, token=READER.text)).status == 403, path
        assert of(await shared.ask("NONE", target, token=None)) == REFUSED, path


async def test_a_method_in_small_letters_is_another_method(shared: App) -> None:
    async with call(shared.url) as caller:
        reply = await caller.ask(request("get", "/devices", KEY))
    assert (reply.status, reply.header("allow")) == (405, "GET, HEAD")


READABLE = [route for route in ROUTES if route.method == "GET"]


@pytest.mark.parametrize("route", READABLE, ids=name_of)
async def test_head_is_answered_as_get_without_the_body(shared: App, route: Route) -> None:
    path = path_of(route)
    async with call(shared.url) as caller:
        got, head = await caller.ask(request("GET", path, KEY)), await caller.ask(request("HEAD", path, KEY))
        assert (head.status, head.body) == (got.status, b"")
        # the figures of these routes differ in each call
        if route.path not in (
            "/diagnostics",
            "/diagnostics/status",
            "/metrics",
            "/overview",
        ):
            assert head.header("content-length") == got.header("content-length")
        assert (await caller.ask(request("GET", "/health"))).status == 200
    refused = await shared.ask("HEAD", path, token=None)
    assert refused.status == (got.status if route.role is None else 401)


ORDER = [
    ("the key comes before all", "PATCH", "/devices/nothing/room", None, 401),
    ("the key comes before the path", "POST", "/no/such/path", None, 401),
    ("the key comes before the body", "POST", f"/devices/{LIGHT}/room", None, 401),
    ("the role comes before the resource", "POST", "/devices/nothing/room", READER.text, 403),
    ("the role comes before the body", "POST", f"/devices/{LIGHT}/command", READER.text, 403),
    ("the method comes before the resource", "PATCH", "/devices/nothing/room", MASTER, 405),
    ("the role comes before the method", "PATCH", f"/devices/{LIGHT}/room", READER.text, 403),
    ("the role comes before the path", "POST", "/no/such/path", READER.text, 403),
    ("a reader may ask for any path", "GET", "/no/such/path", READER.text, 404),
    ("a reader may ask with any method that changes nothing", "GET", "/scenes/reload", READER.text, 405),
    ("the recipe comes before the body", "POST", "/recipes/nothing", MASTER, 404),
    ("the adapter comes before the body", "POST", "/adapters/nothing/operations/info", MASTER, 404),
    ("the body comes last", "POST", f"/devices/{LIGHT}/room", MASTER, 400),
]


@pytest.mark.parametrize(
    ("method", "path", "token", "status"), [row[1:] for row in ORDER], ids=[row[0] for row in ORDER]
)
async def test_checks_have_an_order(shared: App, method: str, path: str, token: str | None, status: int) -> None:
    assert (await shared.ask(method, path, data=b"{", token=token)).status == status


IDS = [
    ("elgato_lights%3Alight%3A0", "elgato_lights:light:0"),
    ("a%2Fb", "a/b"),
    ("a%2fb", "a/b"),
    ("100%25", "100%"),
    ("%252F", "%2F"),
    ("%25", "%"),
    ("a+b", "a+b"),
    ("%20a%20", " a "),
    ("%C3%A4", "ä"),
    ("%E2%98%83", "☃"),
    ("%F0%9F%8F%A0", "🏠"),
    ("%FF", "\ufffd"),
    ("%C3", "\ufffd"),
    ("%ED%A0%80", "\ufffd\ufffd\ufffd"),
    ("%", "%"),
    ("%2", "%2"),
    ("%zz", "%zz"),
    ("%00", "\x00"),
    ("%0D%0A", "\r\n"),
    ("%7B%22", '{"'),
    ("..", ".."),
    ("%2E%2E", ".."),
    ("%2e", "."),
    ("a;b=c", "a;b=c"),
    ("a:b@c", "a:b@c"),
]


@pytest.mark.parametrize(("written", "meant"), IDS)
async def test_an_id_is_decoded_once(shared: App, written: str, meant: str) -> None:
    exists = meant == LIGHT
    for path, what in (("/devices/{}", "device"), ("/rooms/{}", "room"), ("/groups/{}/devices", "group")):
        async with call(shared.url) as caller:
            reply = await caller.ask(request("GET", path.format(written), KEY))
        if exists and what == "device":
            assert (reply.status, reply.json["id"]) == (200, LIGHT)
        else:
            assert (reply.status, reply.json) == (
                404,
                {
                    "error": f"{what} '{meant}' not found",
                    "code": f"{what}_not_found",
                },
            )


class TestTheEventStream:
    async def test_a_stream_without_a_key_is_refused_before_the_upgrade(self, shared: App) -> None:
        for what, authorization in WRONG.items():
            headers = [] if authorization is None else [f"Authorization: {authorization}"]
            raw = request("GET", "/events", *UPGRADE).removesuffix(b"\r\n")
            raw += "".join(f"{each}\r\n" for each in headers).encode(errors="surrogateescape") + b"\r\n"
            async with call(shared.url) as caller:
                reply = await caller.ask(raw)
            assert (reply.status, reply.json) == REFUSED, what
            assert reply.header("www-authenticate") == "Bearer"
            assert reply.header("sec-websocket-accept") is None

    async def test_a_browser_can_send_its_token_as_a_subprotocol(self, shared: App) -> None:
        for offer in (
            f"lares.events, bearer.{READER.text}",
            f"bearer.{READER.text}, lares.events",
            f"other,bearer.{READER.text},lares.events",
            "lares.events, bearer." + "".join(f"%{ord(each):02x}" for each in MASTER),
        ):
            async with call(shared.url) as caller:
                reply = await caller.ask(request("GET", "/events", *UPGRADE, f"Sec-WebSocket-Protocol: {offer}"))
            assert (reply.status, reply.header("sec-websocket-protocol")) == (101, "lares.events")

    async def test_a_browser_can_send_its_token_in_the_query(self, shared: App) -> None:
        encoded = "".join(f"%{ord(each):02X}" for each in MASTER)
        for query in (f"token={READER.text}", f"token={encoded}", f"other=x&token={MASTER}"):
            async with call(shared.url) as caller:
                reply = await caller.ask(request("GET", f"/events?{query}", *UPGRADE))
            assert (reply.status, reply.header("sec-websocket-protocol")) == (101, None)

    async def test_a_wrong_token_of_a_browser_is_refused(self, shared: App) -> None:
        name = "Sec-WebSocket-Protocol: lares.events, bearer."
        offers = [("/events", f"{name}{each}") for each in ("wrong", "", "%ff")]
        queries = [(f"/events?{query}", "X: y") for query in ("token=wrong", "token=", "token", "token=%FF")]
        for path, header in [*offers, *queries]:
            async with call(shared.url) as caller:
                assert (await caller.ask(request("GET", path, *UPGRADE, header))).status == 401, (path, header)

    async def test_two_different_tokens_are_refused(self, shared: App) -> None:
        right, offer = f"token={MASTER}", f"Sec-WebSocket-Protocol: bearer.{MASTER}, lares.events"
        for query, header in ((f"{right}&token=x", "X: y"), (f"token=x&{right}", "X: y"), ("", f"{offer}, bearer.x")):
            async with call(shared.url) as caller:
                reply = await caller.ask(request("GET", f"/events?{query}", *UPGRADE, header))
            assert (reply.status, reply.json["error"]) == (400, "the request has more than one token; send only one")

    async def test_a_header_takes_precedence_over_the_parameters_of_browsers(self, shared: App) -> None:
        async with call(shared.url) as caller:
            wrong = "Authorization: Bearer wrong"
            assert (await caller.ask(request("GET", f"/events?token={MASTER}", *UPGRADE, wrong))).status == 401

    async def test_no_other_path_accepts_such_a_token(self, shared: App) -> None:
        for route in GUARDED:
            if route.path != "/events" and route.role is not Role.HOOK:
                path = f"{path_of(route)}?token={MASTER}"
                offer = f"Sec-WebSocket-Protocol: lares.events, bearer.{MASTER}"
                async with call(shared.url) as caller:
                    reply = await caller.ask(request(route.method, path, *UPGRADE, offer))
                assert (reply.status, reply.json) == REFUSED
        async with call(shared.url) as caller:
            assert (await caller.ask(request("PATCH", f"/events?token={MASTER}"))).status == 401


async def test_on_a_kept_connection_each_request_has_the_present_rights_of_its_key(shared: App) -> None:
    made = {role: (await shared.post("/auth/keys", {"label": role, "role": role})).json for role in ("read", "admin")}
    mine = {role: f"Authorization: Bearer {key['key']}" for role, key in made.items()}
    end = request("DELETE", f"/auth/keys/{made['read']['id']}", mine["admin"])
    end_itself = request("DELETE", f"/auth/keys/{made['admin']['id']}", mine["admin"])
    steps = [
        *[(request("GET", "/devices", mine["read"]), 200)] * 3,
        (request("GET", "/nowhere", mine["read"]), 404),
        (request("GET", "/diagnostics", mine["read"]), 403),
        (request("GET", "/devices"), 401),
        (request("GET", "/nowhere"), 401),
        (request("GET", "/diagnostics", mine["admin"]), 200),
        (request("GET", "/diagnostics", mine["read"]), 403),
    ]
    async with call(shared.url) as kept, call(shared.url) as other:
        for asked, status in steps:
            assert (await kept.ask(asked)).status == status, asked
        assert (await other.ask(end)).status == 204
        for path in ("/devices", "/nowhere"):
            assert (await kept.ask(request("GET", path, mine["read"]))).status == 401
        assert (await kept.ask(request("GET", "/health", mine["read"]))).status == 200
        await other.send(end_itself + request("GET", "/devices", mine["admin"]))
        assert [(await other.reply()).status for _ in range(2)] == [204, 401]
