"""The hub answers any bytes with JSON, or closes the connection. No internal error occurs, and the hub continues."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from appliance.api.app import ROUTES
from appliance.api.limits import ApiLimits
from appliance.api.metrics import CONTENT_TYPE
from appliance.api.route import Route
from appliance.api.routes.backup import TAR
from appliance.home.capabilities import CAPABILITIES
from tests.api.caller import KEY, UPGRADE, frame, request
from tests.fakes import contract_recorder
from tests.fakes.app import MASTER, READER, open_app

LIGHT, TV = "elgato_lights:light:0", "roku_tv:tv"
DECLARED = {501, 503}
"""The only statuses of 500 or more that a request may cause."""

PATIENCE = 30.0


class Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.faults: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Store errors, and all records with a traceback."""
        if record.levelno >= logging.ERROR or (record.exc_info and record.exc_info[0]):
            self.faults.append(record.getMessage())


@dataclass(slots=True, kw_only=True)
class Home:
    """A hub that runs in parallel to the test."""

    port: int
    log: Log

    def dial(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def check(self) -> None:
        """Check that the hub answers, and that its log has no error.

        If an address has opened many connections without a request, the hub rejects the address for up to a second.
        """
        ends = time.monotonic() + PATIENCE
        while not self._answers():
            assert time.monotonic() < ends, "it turns everybody away"
            time.sleep(0.1)
        assert not self.log.faults

    def _answers(self) -> bool:
        with self.dial() as line:
            try:
                line.sendall(request("GET", "/health"))
                return receive(line).status == 200
            except ConnectionError:  # includes http.client.RemoteDisconnected
                return False


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    ready: threading.Event = threading.Event()
    found: list[Any] = []

    async def live() -> None:
        over = asyncio.Event()
        async with open_app(limits=ApiLimits(head_secs=2.0, body_secs=2.0)) as app:
            found.extend((int(app.url.rpartition(":")[2]), asyncio.get_running_loop(), over))
            ready.set()
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(live(),), name="home")
    log = Log()
    logging.getLogger().addHandler(log)
    thread.start()
    assert ready.wait(PATIENCE)
    port, loop, over = found
    yield Home(port=port, log=log)
    loop.call_soon_threadsafe(over.set)
    thread.join(PATIENCE)
    logging.getLogger().removeHandler(log)
    assert not thread.is_alive() and not log.faults


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAnswer:
    status: int
    is_last: bool
    body: bytes


def receive(line: socket.socket, method: str = "GET", asked: bytes = b"") -> RawAnswer:
    """Return the next response, which must be valid for the request.

    Raise `http.client.HTTPException` or `OSError` if no response arrives.
    """
    answer = http.client.HTTPResponse(line, method=method)
    answer.begin()
    body = answer.read()
    if answer.status != 101:
        judge(answer, body, method)
        contract_recorder.judge_raw(asked, answer.status, dict(answer.getheaders()), body)
    return RawAnswer(status=answer.status, is_last=answer.getheader("connection") == "close", body=body)


def judge(answer: http.client.HTTPResponse, body: bytes, method: str) -> None:
    """Fail if the response is an internal error, or a refusal without a reason in JSON."""
    assert answer.status < 500 or answer.status in DECLARED, (answer.status, body)
    assert answer.getheader("server") is None and b"Traceback" not in body
    assert all(value for _, value in answer.getheaders())
    if answer.status == 204:
        assert body == b"" and answer.getheader("content-type") is None
        return
    if answer.status in range(300, 400):  # a redirect to the page
        assert body == b"" and answer.getheader("location")
        return
    if answer.getheader("content-type") in (CONTENT_TYPE, TAR):  # metrics, or a backup
        return
    assert answer.getheader("content-type") == "application/json"
    if method != "HEAD":
        received = json.loads(body)
        if answer.status >= 300:
            assert isinstance(received["error"], str) and received["error"], received


def send(line: socket.socket, data: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):
        line.sendall(data)


def say_and_check(home: Home, method: str, data: bytes) -> int | None:
    """Send one complete request. After the response, the connection must remain usable, or close if the response
    announces that."""
    with home.dial() as line:
        send(line, data)
        collected = receive(line, method, data)
        if collected.status == 101:
            return collected.status
        if collected.is_last:
            assert line.recv(1) == b""
        else:
            send(line, request("GET", "/health"))
            assert receive(line).body == b'{"status":"ok"}'
    return collected.status


TEXTS = st.one_of(
    st.text(max_size=30),
    st.text(alphabet=st.characters(categories=["Cc", "Cf", "Cs", "Co", "Zs", "Zl"]), max_size=10),
    st.sampled_from(["", " ", ".", "..", "/", "%", "%2F", "null", LIGHT, TV, "x" * 257, "x" * 1001, "\x00"]),
    st.just("é" * 300),
)
"""Texts of any kind, including lone surrogates."""

SEGMENTS = st.one_of(
    TEXTS.map(lambda text: quote(text.encode("utf-8", "surrogatepass"), safe="")),
    st.binary(max_size=20).map(lambda data: quote(data, safe="")),
    st.text(alphabet="%0123456789abcdefABCDEFgG:;,=&+~!*'()@$-._", max_size=40),
    st.sampled_from([LIGHT, TV, quote(LIGHT, safe=""), "x" * 7000, "%41" * 2000, "%25" * 20]),
)
"""Segments of a path, as they are sent. Some segments make the head too large."""

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True, allow_infinity=True),
    TEXTS,
)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=8
)
FIELDS = ("id", "name", "members", "room_id", "capability", "action", "value", "transition_secs")
KELVIN = {"value": 4000, "unit": "kelvin"}
VALUES = st.one_of(JSON, st.sampled_from([LIGHT, [LIGHT], [LIGHT, TV, LIGHT], KELVIN, 50, 1e308]))
NEAR = st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, VALUES))
COMMANDS = st.fixed_dictionaries(
    {
        "capability": st.sampled_from(sorted(CAPABILITIES)),
        "action": st.sampled_from(sorted({each for entry in CAPABILITIES.values() for each in entry.actions})),
    },
    optional={"value": VALUES, "transition_secs": LEAVES},
)


def written(value: Any) -> bytes:
    """Return a value in Python's variant of JSON, which allows NaN and lone surrogates."""
    return json.dumps(value).encode()


BODIES = st.one_of(
    st.none(),
    st.binary(max_size=60),
    JSON.map(written),
    NEAR.map(written),
    COMMANDS.map(written),
    st.builds(lambda depth: b"[" * depth + b"]" * depth, st.integers(0, 5000)),
    st.sampled_from([b"", b"{", b'{"id": "a", "id": "b"}', b'{"id":"\xff","name":"x"}', b"\xef\xbb\xbf{}"]),
    st.sampled_from([1 << 20, (1 << 20) + 1, 2 << 20]).map(lambda size: b" " * size),
)
KEYS = st.sampled_from([KEY] * 6 + [f"Authorization: Bearer {READER.text}", "Authorization: Bearer x", "X-None: y"])
HEADERS = st.lists(
    st.one_of(
        st.builds(
            lambda name, value: f"{name}: {value}",
            st.text(alphabet="abcXYZ-_!#$%&'*+.^`|~09", min_size=1, max_size=12),
            st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=40),
        ),
        st.sampled_from(
            [
                "Content-Type: text/html; charset=nonsense",
                "Accept: */*;q=x",
                'Cookie: =;==;"',
                "Host: [::1",
                "Host: a b",
                'Forwarded: for="',
                "X-Forwarded-For: ,,,",
                "Range: bytes=9-1",
                "If-None-Match: *",
                "Connection: keep-alive",
                "Connection: close",
                "Connection: upgrade, keep-alive, close",
                "Upgrade: websocket",
                "Sec-WebSocket-Protocol: ,,bearer.%,",
                'Sec-WebSocket-Extensions: permessage-deflate; x="',
                "Expect: 100-continue",
                "X-HTTP-Method-Override: DELETE",
                "Origin: null",
                "Date: yesterday",
            ]
        ),
    ),
    max_size=5,
)
METHODS = st.sampled_from(["PUT", "PATCH", "OPTIONS", "TRACE", "HEAD", "CONNECT", "NONE", "get", "M-SEARCH", "*"])
SERVED_METHODS = st.sampled_from(["GET", "POST", "DELETE"])
QUERIES = st.one_of(st.just(""), st.text(alphabet="ids=&%;+?/ff0:_", max_size=30).map(lambda text: f"?{text}"))

QUICK = settings(
    max_examples=20,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


def fill_in(route: Route, segments: list[str]) -> str:
    rest = iter(segments)
    return re.sub(r"<\w+>", lambda _: next(rest, "power") or "x", route.path)


Case = tuple[str, list[str], str, list[str], bytes | None, str | None]
CASES: st.SearchStrategy[Case] = st.tuples(
    KEYS, st.lists(SEGMENTS, min_size=1, max_size=1), QUERIES, HEADERS, BODIES, st.none() | METHODS
)


def ask(home: Home, route: Route, case: Case) -> None:
    key, segments, query, headers, body, method = case
    if method is None:
        method = route.method
        body = body or b"{}" if route.body is not None else body
    data = request(method, fill_in(route, segments) + query.replace(" ", "+"), key, *headers, body=body)
    status = say_and_check(home, method, data)
    assert status != 101 or route.is_websocket


def test_routes_survive_random_requests(home: Home) -> None:
    """The slow tests include `test_fuzzing.py` in addition."""

    @QUICK
    @given(route=st.sampled_from(ROUTES), case=CASES)
    def run(route: Route, case: Case) -> None:
        ask(home, route, case)

    run()
    home.check()


PATHS = st.one_of(
    st.lists(SEGMENTS, max_size=5).map(lambda segments: "/" + "/".join(segments)),
    st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), max_size=60).map(lambda text: f"/{text}"),
    st.sampled_from(
        ["*", "/", "//", "///devices", "/devices//", "/.", "/..", "/?", "/#", "http://x/", "https://x:1/devices"]
    ),
)


def take_any_path(how: settings, home: Home) -> None:
    """Send requests whose paths mostly do not exist."""

    @how
    @given(method=METHODS | SERVED_METHODS, path=PATHS, key=KEYS, headers=HEADERS, body=BODIES)
    def run(method: str, path: str, key: str, headers: list[str], body: bytes | None) -> None:
        say_and_check(home, method, request(method, path, key, *headers, body=body))

    run()
    home.check()


VALID = [
    request("GET", "/devices", KEY),
    request("POST", "/rooms", KEY, body=b'{"id":"hall","name":"Hall"}'),
    request("POST", "/rooms", KEY, "Transfer-Encoding: chunked") + b'5\r\n{"id"\r\n3\r\n:1}\r\n0\r\n\r\n',
    request("POST", f"/devices/{LIGHT}/command", KEY, body=b'{"capability":"power","action":"on"}'),
    request("GET", "/events", KEY, *UPGRADE),
    request("GET", f"/devices?ids={TV}", f"Authorization: bearer {MASTER}", "Expect: 100-continue"),
]
EDIT = st.tuples(st.floats(0, 1), st.integers(0, 3), st.binary(min_size=1, max_size=4))
EDITS = st.lists(EDIT, min_size=1, max_size=4)


WHOLE = st.sampled_from(VALID)


def edited(data: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    changed = bytearray(data)
    for place, removed, inserted in edits:
        at = int(place * len(changed))
        changed[at : at + removed] = inserted
    return bytes(changed)


def take_any_bytes(how: settings, home: Home) -> None:
    """Send bytes that are similar to a request, or random bytes, and close the connection."""

    @how
    @given(
        data=st.one_of(
            st.builds(edited, WHOLE, EDITS),
            st.builds(lambda one, edits, other: edited(one, edits) + other, WHOLE, EDITS, WHOLE),
            st.builds(lambda whole, at: whole[: int(at * len(whole))], WHOLE, st.floats(0, 1)),
            st.binary(max_size=200),
            st.binary(max_size=200).map(lambda soup: soup + b"\r\n\r\n"),
        )
    )
    def run(data: bytes) -> None:
        with home.dial() as line:
            send(line, data)
            try:
                line.shutdown(socket.SHUT_WR)
                while receive(line).status != 101:
                    pass
            except (http.client.HTTPException, OSError) as error:
                assert not isinstance(error, TimeoutError)

    run()
    home.check()


FRAMES = st.lists(
    st.one_of(
        st.builds(
            lambda opcode, payload, is_last: frame(opcode, payload, is_last=is_last),
            st.integers(0, 15),
            st.binary(max_size=140),
            st.booleans(),
        ),
        st.binary(max_size=40),
        st.sampled_from([frame(1, b"x" * 65_537), frame(9, b"ping"), frame(8, b"\x03\xe8"), frame(8)]),
    ),
    max_size=8,
)


def take_any_frames(how: settings, home: Home) -> None:
    """Send the event stream bytes that are similar to WebSocket frames."""

    @how
    @given(frames=FRAMES)
    def run(frames: list[bytes]) -> None:
        with home.dial() as line:
            send(line, request("GET", "/events", KEY, *UPGRADE) + b"".join(frames))
            assert receive(line).status == 101
            try:
                line.shutdown(socket.SHUT_WR)
                while line.recv(65536):
                    pass
            except OSError as error:
                assert not isinstance(error, TimeoutError)

    run()
    home.check()


SUITES: dict[str, tuple[Callable[[settings, Home], None], int]] = {
    "paths": (take_any_path, 1_500),
    "bytes": (take_any_bytes, 3_000),
    "frames": (take_any_frames, 2_000),
}


@pytest.mark.parametrize("suite", SUITES)
def test_the_hub_survives_any(home: Home, suite: str) -> None:
    run, _ = SUITES[suite]
    run(QUICK, home)


@pytest.mark.slow
@pytest.mark.parametrize("share", [5, pytest.param(1, marks=pytest.mark.release)])
@pytest.mark.parametrize("suite", SUITES)
def test_the_hub_survives_any_for_long(home: Home, suite: str, share: int) -> None:
    run, many = SUITES[suite]
    run(settings(QUICK, max_examples=many // share), home)
