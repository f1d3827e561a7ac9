"""Messages to people: the requests that a real HTTP server and a real SMTP server receive, and errors."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from appliance import config
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.notify.adapter import MAX_WAITING_BYTES, NotifyAdapter, build
from appliance.byte_budget import JSON_VALUE_BYTES
from appliance.clock import Clock
from appliance.errors import AdapterFailed, BadAnswer, Busy, ConfigFailed, Invalid, Unreachable
from tests.fakes.clock import VirtualClock
from tests.fakes.context import context_of
from tests.fakes.patience import until

HARD = 'Tür "auf"\\ {title} <&> ünd\nnoch 50%'
TOKEN = "tok/en-secret"

Request = tuple[str, str, dict[str, str], str]


class InstantClock(Clock):
    """A clock that ends each pause at once, and records the length of the pause."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@asynccontextmanager
async def listening(statuses: list[int], received: list[Request], text: str = TOKEN) -> AsyncIterator[str]:
    """Run a web server that answers with these statuses in order, and then with 200."""

    async def answer(request: web.Request) -> web.Response:
        body = (await request.read()).decode()
        received.append((request.method, request.raw_path, dict(request.headers), body))
        return web.Response(status=statuses.pop(0) if statuses else 200, text=text)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def section(text: str, session: Any, clock: Clock, root: Path = Path()) -> NotifyAdapter:
    """Create the adapter of a section `phone` with these lines."""
    settings = config.parse(f"[adapters.phone]\ntype = 'notify'\n{text}", "home.toml", {}).adapters["phone"]
    return build(settings, replace(context_of("phone", session, clock), root=root))


async def send(adapter: NotifyAdapter, message: str = HARD, **more: Any) -> Any:
    return await adapter.operations["send"]({"message": message, **more})


WEB: dict[str, tuple[str, tuple[str, str, dict[str, str], str]]] = {
    "nothing but an address": (
        "url = '{url}/hook'",
        ("POST", "/hook", {"Content-Type": "text/plain; charset=utf-8"}, HARD),
    ),
    "a JSON body": (
        """url = '{url}/hook'\nbody = '{{"text": "{{title}}: {{message}}", "raw": {{message}}}}'""",
        (
            "POST",
            "/hook",
            {"Content-Type": "application/json"},
            '{"text": "Door: T\\u00fcr \\"auf\\"\\\\ {title} <&> \\u00fcnd\\nnoch 50%",'
            ' "raw": "T\\u00fcr \\"auf\\"\\\\ {title} <&> \\u00fcnd\\nnoch 50%"}',
        ),
    ),
    "a URL": (
        "url = '{url}/{{token}}/x?text={{message}}&t={{title}}'\nmethod = 'GET'\ntoken = 'tok/en-secret'",
        (
            "GET",
            "/tok%2Fen-secret/x?text=T%C3%BCr%20%22auf%22%5C%20%7Btitle%7D%20%3C%26%3E%20%C3%BCnd%0Anoch%2050%25&t=Door",
            {},
            "",
        ),
    ),
    "a header": (
        "url = '{url}/'\nheaders = {{ X-Text = 'a {{message}}', Authorization = 'Key {{token}}' }}\n"
        "token = 'tok/en-secret'",
        ("POST", "/", {"X-Text": 'a Tür "auf"\\ {title} <&> ünd noch 50%', "Authorization": f"Key {TOKEN}"}, HARD),
    ),
    "a form": (
        "url = '{url}/'\nbody = 'm={{message}}&x=1'\n"
        "headers = {{ content-type = 'application/x-www-form-urlencoded' }}",
        ("POST", "/", {}, "m=T%C3%BCr%20%22auf%22%5C%20%7Btitle%7D%20%3C%26%3E%20%C3%BCnd%0Anoch%2050%25&x=1"),
    ),
    "a form without its type": (
        "url = '{url}/'\nbody = 'm={{message}}&x=1'",
        ("POST", "/", {"Content-Type": "application/x-www-form-urlencoded"}, "m=T%C3%BCr%20%22auf%22%5C%20"),
    ),
    "XML without its type": (
        "url = '{url}/'\nbody = '<a>{{message}}</a>'",
        (
            "POST",
            "/",
            {"Content-Type": "application/xml; charset=utf-8"},
            "&quot;auf&quot;\\ {title} &lt;&amp;&gt; ünd",
        ),
    ),
    "HTML without its type": (
        "url = '{url}/'\nbody = '<!DOCTYPE html><p>{{message}}</p>'",
        ("POST", "/", {"Content-Type": "text/html; charset=utf-8"}, "&quot;auf&quot;\\ {title} &lt;&amp;&gt; ünd"),
    ),
    "a text with an equals sign": (
        "url = '{url}/'\nbody = 'text = {{message}} & more'",
        ("POST", "/", {"Content-Type": "text/plain; charset=utf-8"}, f"text = {HARD} & more"),
    ),
    "a token that nothing names": (
        "url = '{url}/'\ntoken = 'tok/en-secret'",
        ("POST", "/", {"Authorization": f"Bearer {TOKEN}"}, HARD),
    ),
    "a name and a password": (
        "url = '{url}/'\nusername = 'me'\npassword = 'pw'",
        ("POST", "/", {"Authorization": "Basic " + base64.b64encode(b"me:pw").decode()}, HARD),
    ),
    "ntfy": (
        "service = 'ntfy'\nurl = '{url}'\ntopic = 'my/home'\ntoken = 'tok/en-secret'",
        ("POST", "/my%2Fhome", {"Title": "Door", "Authorization": f"Bearer {TOKEN}"}, HARD),
    ),
    "gotify": (
        "service = 'gotify'\nurl = '{url}/sub/'\ntoken = 'tok/en-secret'",
        ("POST", "/sub/message", {"X-Gotify-Key": TOKEN, "Content-Type": "application/json"}, '"title": "Door"'),
    ),
    "pushover": (
        "service = 'pushover'\nurl = '{url}'\ntoken = 'tok/en-secret'\nuser = 'u1'",
        ("POST", "/1/messages.json", {}, f'{{"token": "{TOKEN}", "user": "u1", "title": "Door", "message": "T'),
    ),
    "telegram": (
        "service = 'telegram'\nurl = '{url}'\ntoken = 'tok/en-secret'\nchat = '-100'",
        ("POST", "/bottok%2Fen-secret/sendMessage", {}, '{"chat_id": "-100", "text": "Door\\nT'),
    ),
}


@pytest.mark.parametrize(("lines", "expected"), WEB.values(), ids=WEB)
async def test_a_message_is_escaped_for_its_place(session: DeviceSession, lines: str, expected: Request) -> None:
    received: list[Request] = []
    async with listening([], received) as url:
        answer = await send(section(lines.format(url=url), session, InstantClock()), title="Door")
    [(method, path, headers, body)] = received
    assert (answer, method, path) == ({"status": "sent"}, expected[0], expected[1])
    assert {name: headers.get(name) for name in expected[2]} == expected[2]
    assert expected[3] in body


@pytest.mark.parametrize(
    ("lines", "text", "expected"),
    [
        ("service = 'ntfy'\ntopic = 'home'", "a" * 4096, "a" * 4096),
        ("service = 'ntfy'\ntopic = 'home'", "ü" * 2049, "ü" * 2046 + "…"),  # ntfy would attach a longer text
        ("url = '{url}/'", "ü" * 4096, "ü" * 4096),
    ],
)
async def test_a_text_is_cut_to_the_limit(session: DeviceSession, lines: str, text: str, expected: str) -> None:
    received: list[Request] = []
    async with listening([], received) as url:
        more = f"url = '{url}'\n" if "url" not in lines else ""
        await send(section(more + lines.replace("{url}", url), session, InstantClock()), text)
    assert received[0][3] == expected


@pytest.mark.parametrize("failures", [1, 2, 3])
async def test_a_message_has_three_attempts_with_pauses_and_then_an_error_without_the_token(
    session: DeviceSession, caplog: pytest.LogCaptureFixture, failures: int
) -> None:
    caplog.set_level(logging.DEBUG)
    received: list[Request] = []
    clock = InstantClock()
    async with listening([500] * failures, received) as url:
        adapter = section(f"url = '{url}/{{token}}'\ntoken = '{TOKEN}'", session, clock)
        if failures < 3:
            assert await send(adapter) == {"status": "sent"}
        else:
            with pytest.raises(BadAnswer, match="answered 500 Internal Server Error") as failed:
                await send(adapter)
            assert TOKEN not in str(failed.value)
    assert (len(received), clock.pauses) == (min(failures + 1, 3), [1.0, 4.0][: min(failures, 2)])
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(
    "large",
    ["y" * (MAX_WAITING_BYTES // 3), [[]] * (MAX_WAITING_BYTES // 6 // JSON_VALUE_BYTES)],
    ids=["text", "values"],
)
async def test_the_payloads_of_waiting_messages_have_a_limit(
    session: DeviceSession, clock: VirtualClock, large: Any
) -> None:
    async with listening([500], []) as url:
        adapter, large = section(f"url = '{url}/'", session, clock), {"x": large}
        sending = [asyncio.ensure_future(send(adapter, fields=large)) for _ in range(2)]
        await until(lambda: clock.sleepers)
        with pytest.raises(Busy, match=r"^the waiting messages of phone would need more than 1024 KiB"):
            await send(adapter, fields=large)
        sending.append(asyncio.ensure_future(send(adapter)))
        await clock.advance(1, sleepers=0)
        assert await asyncio.gather(*sending) == [{"status": "sent"}] * 3
        assert await send(adapter, fields={"x": "y" * MAX_WAITING_BYTES}) == {"status": "sent"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}', "Bad Request: chat not found"),
        (
            '{"user":"invalid","errors":["user key is invalid","try again"],"status":0}',
            "user key is invalid; try again",
        ),
        (
            '{"error":"Unauthorized","errorCode":401,"errorDescription":"you need a valid token"}',
            "you need a valid token",
        ),
        ('{"code":40301,"http":403,"error":"forbidden"}', "forbidden"),
        ("too\x1b many\r\nrequests", "too many requests"),
        (f"no such bot {TOKEN} at /hooks/tok%2Fen-secret", "no such bot *** at ***"),
        ("<html><body>Forbidden</body></html>", ""),
        ("[]", ""),
    ],
)
async def test_a_refusal_quotes_the_service_without_secrets(session: DeviceSession, text: str, reason: str) -> None:
    async with listening([403] * 3, [], text) as url:
        adapter = section(f"url = '{url}/hooks/{{token}}'\ntoken = '{TOKEN}'", session, InstantClock())
        with pytest.raises(BadAnswer) as failed:
            await send(adapter)
    assert str(failed.value) == f"three attempts failed: {url} answered 403 Forbidden" + (reason and f": {reason}")


BUTTONS = (
    "hub_url = 'https://home.example/'\nhook_keys = { feed = 'lrs_a_key', 'device:virtual:bell' = 'lrs_b/key' }\n"
)
ACTIONS = [{"label": 'Feed "now", {token}', "hook": "feed"}, {"label": "Bell", "hook": "device:virtual:bell"}]


async def test_ntfy_shows_buttons_that_call_hooks(session: DeviceSession) -> None:
    received: list[Request] = []
    async with listening([], received) as url:
        adapter = section(f"service = 'ntfy'\nurl = '{url}'\ntopic = 'home'\n{BUTTONS}", session, InstantClock())
        await send(adapter, fields={"actions": ACTIONS})
    [(_, _, headers, body)] = received
    shared = {"action": "http", "method": "POST", "clear": True}
    assert json.loads(headers["Actions"]) == [
        {
            **shared,
            "label": 'Feed "now", {token}',
            "url": "https://home.example/hooks/feed",
            "headers": {"Authorization": "Bearer lrs_a_key"},
        },
        {
            **shared,
            "label": "Bell",
            "url": "https://home.example/hooks/device:virtual:bell",
            "headers": {"Authorization": "Bearer lrs_b/key"},
        },
    ]
    assert body == HARD


async def test_telegram_shows_buttons_that_open_the_address_of_their_hook(session: DeviceSession) -> None:
    received: list[Request] = []
    async with listening([], received) as url:
        lines = f"service = 'telegram'\nurl = '{url}'\ntoken = 't0ken'\nchat = '7'\n{BUTTONS}"
        await send(section(lines, session, InstantClock()), fields={"actions": ACTIONS})
    reported = json.loads(received[0][3])
    assert (reported["chat_id"], reported["text"]) == ("7", HARD)
    assert reported["reply_markup"] == {
        "inline_keyboard": [
            [{"text": 'Feed "now", {token}', "url": "https://home.example/hooks/feed?token=lrs_a_key"}],
            [{"text": "Bell", "url": "https://home.example/hooks/device:virtual:bell?token=lrs_b%2Fkey"}],
        ]
    }


async def test_a_service_gets_buttons_if_its_body_has_them(session: DeviceSession) -> None:
    received: list[Request] = []
    body = """body = '{"text": {message}, "buttons": {actions}, "as_text": "{actions}"}'"""
    async with listening([], received) as url:
        adapter = section(f"url = '{url}/'\ntoken = 't0ken'\n{body}\n{BUTTONS}", session, InstantClock())
        await send(adapter, fields={"actions": ACTIONS[:1]})
        await send(adapter)
    shown = {"label": 'Feed "now", {token}', "url": "https://home.example/hooks/feed", "method": "POST"}
    reported = json.loads(received[0][3])
    assert reported["text"] == HARD and reported["buttons"] == json.loads(reported["as_text"]) == [
        {**shown, "token": "lrs_a_key"}
    ]
    assert json.loads(received[1][3])["buttons"] == []


@pytest.mark.parametrize(
    ("lines", "reason", "hooks"),
    [
        (
            "service = 'ntfy'\nurl = '{url}'\ntopic = 'home'",
            "the section has no hub_url and hook_keys",
            ["feed", "device:virtual:bell"],
        ),
        (
            "url = '{url}/'\n" + BUTTONS,
            "messages of this section cannot show buttons",
            ["feed", "device:virtual:bell"],
        ),
        (
            "service = 'ntfy'\nurl = '{url}'\ntopic = 'home'\nhub_url = 'http://hub'\nhook_keys = { feed = 'lrs_a' }",
            "hook_keys has no key for it",
            ["device:virtual:bell"],
        ),
    ],
)
async def test_each_omitted_button_is_logged_once_with_its_hook_and_the_reason(
    session: DeviceSession, caplog: pytest.LogCaptureFixture, lines: str, reason: str, hooks: list[str]
) -> None:
    received: list[Request] = []
    async with listening([], received) as url:
        adapter = section(lines.replace("{url}", url), session, InstantClock())
        for _ in range(2):
            assert await send(adapter, fields={"actions": ACTIONS}) == {"status": "sent"}
    assert len(received) == 2 and ("Actions" in received[0][2]) == (len(hooks) == 1)
    assert [each.getMessage() for each in caplog.records] == [
        f"phone: the button for the hook '{hook}' is omitted, because {reason} (docs/notify.md)" for hook in hooks
    ]
    assert "lrs_" not in caplog.text


async def test_the_keys_of_hooks_appear_in_no_error(session: DeviceSession, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with listening([400] * 3, [], "bad button lrs_a_key lrs_b%2Fkey") as url:
        lines = f"service = 'telegram'\nurl = '{url}'\ntoken = 't0ken'\nchat = '7'\n{BUTTONS}"
        with pytest.raises(BadAnswer, match=r"bad button \*\*\* \*\*\*"):
            await send(section(lines, session, InstantClock()), fields={"actions": ACTIONS})
    assert "lrs_" not in caplog.text


async def test_a_silent_server_is_unreachable(session: DeviceSession) -> None:
    with pytest.raises(Unreachable, match="three attempts failed: http"):
        await send(section("url = 'http://127.0.0.1:1/'", session, InstantClock()))


async def test_messages_are_sent_one_after_another(session: DeviceSession) -> None:
    received: list[Request] = []
    async with listening([500, 500], received) as url:
        adapter = section(f"url = '{url}/'", session, InstantClock())
        await asyncio.gather(*(send(adapter, str(number)) for number in range(5)))
    assert [body for _, _, _, body in received] == ["0", "0", "0", "1", "2", "3", "4"]


async def test_excess_messages_are_combined(session: DeviceSession, caplog: pytest.LogCaptureFixture) -> None:
    received: list[Request] = []
    clock = VirtualClock()
    async with listening([], received) as url:
        adapter = section(f"url = '{url}/'\nbody = '{{title}}|{{message}}'\nmax_per_hour = 2", session, clock)
        running = asyncio.ensure_future(adapter.run())
        answers = [await send(adapter, f"m{number}", title=None if number % 2 else "T") for number in range(60)]
        assert [each["status"] for each in answers] == ["sent"] * 2 + ["gathered"] * 58
        assert [body for *_, body in received] == ["T|m0", "Lares|m1"]
        await until(lambda: clock.sleepers == 1)
        await clock.advance(3600, sleepers=0)
        await until(lambda: len(received) == 3)
        title, _, text = received[2][3].partition("|")
        lines = text.splitlines()
        assert (title, lines[0], lines[1], len(lines), lines[-1]) == (
            "58 messages",
            "T: m2",
            "m3",
            51,
            "and 8 more",
        )
        assert [await send(adapter) for _ in range(2)] == [{"status": "sent"}, {"status": "gathered"}]
        running.cancel()
        await asyncio.wait({running})
    assert sum("sent together in 60 min" in record.message for record in caplog.records) == 2
    assert caplog.records[-1].message == "phone: stopped; 1 collected messages were not sent"


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"message": ""},
        {"message": 5},
        {"message": "x" * 5000},
        {"message": "x", "title": 5},
        {"message": "x", "fields": 1},
        {"message": "x", "fields": {"actions": {"label": "a", "hook": "b"}}},
        {"message": "x", "fields": {"actions": [7]}},
        {"message": "x", "fields": {"actions": [{"label": "a"}]}},
        {"message": "x", "fields": {"actions": [{"label": "", "hook": "b"}]}},
        {"message": "x", "fields": {"actions": [{"label": "a", "hook": "b", "url": "c"}]}},
        {"message": "x", "fields": {"actions": [{"label": "a", "hook": "b"}] * 4}},
    ],
)
async def test_invalid_messages_are_refused(session: DeviceSession, payload: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        await section("url = 'http://127.0.0.1:1/'", session, InstantClock()).operations["send"](payload)


async def test_secrets_are_read_from_files_next_to_the_configuration(session: DeviceSession, tmp_path: Path) -> None:
    received: list[Request] = []
    async with listening([], received) as url:
        adapter = section(f"url = '{url}/'\ntoken_file = 'phone.token'", session, InstantClock(), tmp_path)
        with pytest.raises(AdapterFailed, match=r"token_file: cannot read .*phone\.token: No such file"):
            await send(adapter)
        (tmp_path / "phone.token").write_text(f"{TOKEN}\nof the second phone\n")
        await send(adapter)
    assert received[0][2]["Authorization"] == f"Bearer {TOKEN}"


FAULTS = {
    "": "must have one of url, service, and smtp",
    "url = 'http://a/'\nsmtp = 'a:25'": "must have one of url, service, and smtp",
    "service = 'ntfy'": "must have topic for the service ntfy",
    "service = 'gotify'\ntoken = 'x'": "must have url for the service gotify",
    "service = 'telegram'\nchat = '1'": "must have token or token_file for the service telegram",
    "service = 'ntfyy'": "did you mean ntfy?",
    "service = 'ntfy'\ntopic = 'x'\nbody = 'x'": "body, which cannot be combined with service",
    "smtp = 'a:25'": "must have the settings from and to",
    "smtp = 'a'": 'must be a server and its port like "smtp.example.org:587", not',
    "smtp = 'a:25'\nfrom = 'x'\nto = 'a@b'": "must be an address like",
    "smtp = 'a:25'\nfrom = 'a@b'\nto = []": "must have at least one address",
    "smtp = 'a:25'\nfrom = 'a@b'\nto = 'c@d'\nfingerprint = '"
    + "ab" * 32
    + "'": "fingerprint, which cannot be combined with smtp",
    "url = 'http://a/'\ntoken = 'x'\ntoken_file = 'y'": "both token and token_file",
    "url = 'http://a/{token}'": "uses {token}, but has neither",
    "url = 'http://a/'\nbody = '{\"a\": \"{Mesage}\"}'": "unknown placeholder {Mesage}; did you mean {message}?",
    "url = 'http://a/'\nusername = 'x'": "has only one of username and password",
    "url = 'http://me:secret@a/'": "must be an address like",
    "url = 'http://{message}/'": "must be an address like",
    "url = 'ftp://a/'": "must be an address like",
    "url = 'http://a/'\nheaders = { 'a b' = 'x' }": "not a valid header name",
    "url = 'http://a/'\nheaders = { a = \"x\\ny\" }": "a string of one line",
    "url = 'http://a/'\nmax_per_hour = 0": "whole number from 1",
    "url = 'http://a/'\ntopik = 'x'": "did you mean",
    "url = 'http://a/'\nhub_url = 'http://b'": "has only one of hub_url and hook_keys",
    "url = 'http://a/'\nhook_keys = { feed = 'secret' }": "has only one of hub_url and hook_keys",
    "url = 'http://a/'\nhub_url = 'http://b'\nhook_keys = { '' = 'secret' }": "hook_keys of the hook",
    "url = 'http://a/'\nhub_url = 'http://b'\nhook_keys = 'secret'": 'must be a table like { feed = "lrs_…" }',
    "smtp = 'a:25'\nfrom = 'a@b'\nto = 'c@d'\nhub_url = 'http://b'\nhook_keys = { feed = 'secret' }": "hub_url",
}


@pytest.mark.parametrize(("lines", "fault"), FAULTS.items(), ids=FAULTS.values())
def test_keys_that_exclude_each_other_are_errors_without_secrets(lines: str, fault: str) -> None:
    with pytest.raises(ConfigFailed) as failed:
        config.parse(f"[adapters.phone]\ntype = 'notify'\n{lines}", "home.toml", {})
    assert fault in str(failed.value) and "secret" not in str(failed.value)


class MailServer:
    """A mail server: A server that supports EHLO, STARTTLS, AUTH PLAIN, MAIL, RCPT, and DATA. `refusals` has other
    answers to commands."""

    def __init__(self, tls: ssl.SSLContext | None, refusals: dict[str, list[str]]) -> None:
        self.mails: list[str] = []
        self.logins: list[tuple[str, bool]] = []
        self.recipients: list[str] = []
        self.connections = 0
        self._tls = tls
        self._refusals = refusals

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        is_secure = writer.get_extra_info("ssl_object") is not None
        writer.write(b"220 test\r\n")
        while line := (await reader.readline()).decode().strip():
            word = line.split(":")[0].split(" ")[0].upper()
            if self._refusals.get(word):
                writer.write(f"{self._refusals[word].pop(0)}\r\n".encode())
            elif word == "EHLO":
                offers = ["test", *(["STARTTLS"] if self._tls and not is_secure else []), "AUTH PLAIN"]
                writer.write(
                    "".join(f"250{'-' if each != offers[-1] else ' '}{each}\r\n" for each in offers).encode()
                )
            elif word == "STARTTLS" and self._tls:
                writer.write(b"220 go\r\n")
                await writer.start_tls(self._tls)
                is_secure = True
            elif word == "AUTH":
                self.logins.append((base64.b64decode(line.split(" ")[2]).decode(), is_secure))
                writer.write(b"235 ok\r\n")
            elif word == "DATA":
                writer.write(b"354 go\r\n")
                self.mails.append((await reader.readuntil(b"\r\n.\r\n")).decode())
                writer.write(b"250 ok\r\n")
            elif word == "QUIT":
                writer.write(b"221 bye\r\n")
                break
            else:
                if word == "RCPT":
                    self.recipients.append(line)
                writer.write(b"250 ok\r\n")
        writer.close()


TLS = Path(__file__).parents[1] / "fixtures" / "tls"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a certificate for localhost with its key, in one file."""
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    file.write_text((TLS / "key.pem").read_text() + (TLS / "cert.pem").read_text())
    return file


@asynccontextmanager
async def mail_server(
    certificate: Path, tls: str, refusals: dict[str, list[str]] | None = None
) -> AsyncIterator[tuple[MailServer, str]]:
    """Run a server. Yield the server, and the lines of a section that sends to the server."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    it = MailServer(context if tls == "starttls" else None, refusals or {})
    server = await asyncio.start_server(it.serve, "localhost", 0, family=2, ssl=context if tls == "tls" else None)
    port = server.sockets[0].getsockname()[1]
    lines = f"smtp = 'localhost:{port}'\ntls = '{tls}'\nfrom = 'Hub <hub@home.example>'"
    lines += "\nto = ['a@home.example', 'b@home.example']"
    async with server:
        yield it, lines if tls == "none" else f"{lines}\nca_file = '{certificate}'"


@pytest.mark.parametrize("tls", ["starttls", "tls", "none"])
async def test_mail_arrives_after_handshake_and_login(session: DeviceSession, certificate: Path, tls: str) -> None:
    async with mail_server(certificate, tls) as (server, lines):
        adapter = section(f"{lines}\nusername = 'me'\npassword = 'pw-secret'", session, InstantClock())
        await send(adapter, "Die Tür\n.\nist auf", title="Tür\r\nBcc: x@evil.example")
    assert server.logins == [("\0me\0pw-secret", tls != "none")]
    assert len(server.recipients) == 2
    [mail] = server.mails
    head, _, body = mail.partition("\r\n\r\n")
    assert "Bcc" not in head.replace("=?utf-8", "") or "\r\nBcc" not in head
    assert "From: Hub <hub@home.example>" in head and "To: a@home.example, b@home.example" in head
    assert "Date: " in head and "@home.example>" in head
    assert "ist auf" in body or "aXN0IGF1Zg" in body.replace("\r\n", "") or base64.b64decode(body.split("\r\n.")[0])


@pytest.mark.parametrize(
    ("refusals", "reason"),
    [
        ({"AUTH": ["535 no pw-secret"] * 3}, r"refused the message: 535 no \*\*\*"),
        (
            {"RCPT": ["550 5.7.1 relaying denied", "550 5.1.1 who\x1b[31m"] * 3},
            r"refused a@home\.example: 550 5\.7\.1 relaying denied; b@home\.example: 550 5\.1\.1 who \[31m",
        ),
        (
            {"DATA": ["554-5.7.1 Message rejected as spam,\r\n554 see https://x.example"] * 3},
            r"refused the message: 554 5\.7\.1 Message rejected as spam, see https://x\.example",
        ),
        ({"DATA": ["554 " + "x" * 480] * 3}, r"refused the message: 554 x{195}…$"),
        ({"STARTTLS": ["454 no"] * 3}, "mail server localhost"),
    ],
)
async def test_a_refusal_of_a_mail_server_is_an_error_without_secrets(
    session: DeviceSession, certificate: Path, refusals: dict[str, list[str]], reason: str
) -> None:
    async with mail_server(certificate, "starttls", refusals) as (server, lines):
        adapter = section(f"{lines}\nusername = 'me'\npassword = 'pw-secret'", session, InstantClock())
        with pytest.raises(AdapterFailed, match=reason) as failed:
            await send(adapter)
    assert "secret" not in str(failed.value) and server.connections == 3 and not server.mails


@pytest.mark.slow
async def test_no_password_is_sent_over_an_untrusted_certificate(session: DeviceSession, certificate: Path) -> None:
    async with mail_server(certificate, "starttls") as (server, lines):
        own = "\n".join(each for each in lines.splitlines() if not each.startswith("ca_file"))
        with pytest.raises(AdapterFailed, match="certificate"):
            await send(section(f"{own}\nusername = 'me'\npassword = 'pw'", session, InstantClock()))
    assert not server.logins and not server.mails


async def test_certificates_for_a_mail_are_not_loaded_on_the_event_loop(
    session: DeviceSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, unused = [], tmp_path / "unused.pem"
    unused.write_text("\n".join((TLS / name).read_text() for name in ("key.pem", "cert.pem")))

    def build(*given: Any, build: Any = ssl.create_default_context, **named: Any) -> ssl.SSLContext:
        threads.append(threading.current_thread())
        return build(*given, **named)  # type: ignore[no-any-return]

    async with mail_server(unused, "tls") as (server, lines):
        monkeypatch.setattr(ssl, "create_default_context", build)
        await send(section(lines, session, InstantClock()))
    assert len(server.mails) == len(threads) == 1 and threads[0] is not threading.current_thread()


async def test_a_temporarily_refused_mail_is_sent_again(session: DeviceSession, certificate: Path) -> None:
    async with mail_server(certificate, "starttls", {"DATA": ["451 later"]}) as (server, lines):
        assert await send(section(lines, session, InstantClock())) == {"status": "sent"}
    assert (server.connections, len(server.mails)) == (2, 1)


async def test_accepted_recipients_get_a_mail_once(session: DeviceSession, certificate: Path) -> None:
    async with mail_server(certificate, "starttls", {"RCPT": ["550 who"]}) as (server, lines):
        with pytest.raises(AdapterFailed, match=r"\Athe mail server localhost rejected a@home\.example: 550 who; "):
            await send(section(lines, session, InstantClock()))
    assert (server.connections, len(server.mails)) == (1, 1)
