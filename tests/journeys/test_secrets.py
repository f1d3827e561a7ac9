"""Secrets are not revealed. The test uses many keys, and then searches all files, responses, and logs."""

from __future__ import annotations

import asyncio
import gzip
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest

from appliance.api.roles import Role
from tests.cli.commands import LOOPBACK, PATIENCE, Ended, Running, box, ended, lares

WRONG = "lrs_{}_" + "wrongsecret" * 3 + "0123456789"
"""A wrong secret in the correct format. A wrong secret must not appear either, because a mistyped secret is
similar to the real one."""

OWN = "the-owners-own-key-that-is-configured"


@dataclass
class Traces:
    """The secrets of the test, and all texts that must not contain a secret."""

    secrets: set[str] = field(default_factory=set)
    texts: dict[str, bytes] = field(default_factory=dict)
    reported: int = 0

    def note(self, where: str, text: str | bytes) -> None:
        self.reported += 1
        self.texts[f"{self.reported} {where}"] = text if isinstance(text, bytes) else text.encode()

    def note_files(self, folder: Path) -> None:
        """Record all files of the folder, including files inside archives."""
        for file in (path for path in folder.rglob("*") if path.is_file()):
            data = file.read_bytes()
            self.note(str(file), data)
            if data.startswith(b"\x1f\x8b"):
                self.note(f"{file}, unpacked", gzip.decompress(data))

    def finds(self) -> Iterator[str]:
        """Yield the places of each secret, or of its random part."""
        parts = {secret: {secret, secret[-43:], quote(secret, safe="")} for secret in self.secrets}
        for where, text in self.texts.items():
            for secret, forms in parts.items():
                if any(form.encode() in text for form in forms):
                    yield f"{secret} in {where}: {text[:300]!r}"


def ask(traces: Traces, url: str, method: str, path: str, token: str | None, body: Any = None) -> tuple[int, bytes]:
    """Return the response. Record the response with its headers, unless the response may contain a secret."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data=data, headers=headers, method=method)
    try:
        answer = urllib.request.urlopen(request, timeout=PATIENCE)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        received: bytes = answer.read()
        if (method, path, answer.status) != ("POST", "/auth/keys", 200):
            traces.note(f"{method} {path}: {answer.status}", str(answer.headers).encode() + received)
        return answer.status, received


async def listen(url: str, token: str) -> list[int]:
    """Open `/events` with the token in each possible way. Return the statuses of the responses. Status 101 means
    success."""
    ways: list[dict[str, Any]] = [
        {"headers": {"Authorization": f"Bearer {token}"}},
        {"protocols": ["lares.events", f"bearer.{quote(token, safe='')}"]},
        {"params": {"token": token}},
    ]
    statuses = []
    async with aiohttp.ClientSession() as session:
        for way in ways:
            try:
                async with session.ws_connect(f"{url}/events", **way):
                    statuses.append(101)
            except aiohttp.WSServerHandshakeError as refused:
                statuses.append(refused.status)
    return statuses


def use(traces: Traces, url: str, token: str, *, is_good: bool) -> None:
    """Use the token in all ways that clients do."""
    assert asyncio.run(listen(url, token)) == [101 if is_good else 401] * 3
    for method, path in (("GET", "/devices"), ("GET", "/nothing"), ("PATCH", "/rooms"), ("POST", "/rooms")):
        status, _ = ask(traces, url, method, path, token, {} if method == "POST" else None)
        assert (status == 401) != is_good, (method, path, status)
    for path in (f"/devices?token={token}", f"/hooks/nobody?token={token}", f"/{token}", f"/rooms/{token}"):
        ask(traces, url, "GET", path, None)


def call_hook(traces: Traces, url: str, token: str) -> None:
    """Call the hook of the token with both methods. No automation has a trigger for this hook."""
    assert ask(traces, url, "POST", "/hooks/nobody", token, {})[0] == 404
    for path, status in (("/hooks/nobody", 404), ("/hooks/other", 403), ("/devices", 401)):
        assert ask(traces, url, "GET", f"{path}?token={token}", None)[0] == status


def journey(traces: Traces, folder: Path, running: Running, owner: str) -> None:
    """Use keys in every way: create, use, guess, revoke, and reset them. Afterwards, read everything."""
    url = running.url()
    note_arguments(traces, running)
    made = [json.loads(ask(traces, url, "POST", "/auth/keys", owner, expected(role))[1]) for role in Role]
    created = keep(traces, ended(folder, "key", "create", "--label", "from the box", "--role", "write"))
    hook_token = next(each["key"] for each in made if each["role"] == Role.HOOK)
    tokens = [*(each["key"] for each in made if each["key"] != hook_token), created]
    traces.secrets.update((*tokens, hook_token))
    call_hook(traces, url, hook_token)
    for token in (owner, *tokens):
        use(traces, url, token, is_good=True)
    for name in ("master", created.split("_")[1], "nobody"):
        traces.secrets.add(WRONG.format(name))
        use(traces, url, WRONG.format(name), is_good=False)
    for path in ("/auth/keys", "/diagnostics"):
        assert ask(traces, url, "GET", path, owner)[0] == 200
    assert ask(traces, url, "DELETE", f"/auth/keys/{made[0]['id']}", owner)[0] == 204
    use(traces, url, tokens[0], is_good=False)
    for command in (("key", "list"), ("backup", f"{running.process.pid}.tar.gz"), ("doctor",), ("check",)):
        note_words(traces, ended(folder, *command))
    note_arguments(traces, running)


def expected(role: Role) -> dict[str, str]:
    return {"label": f"a key to {role}", "role": role} | ({"hook": "nobody"} if role is Role.HOOK else {})


def keep(traces: Traces, message: Ended) -> str:
    """Return the secret that a command printed. Check that the command printed the secret only once."""
    assert message.code == 0, message
    traces.note("standard error", message.err)
    return message.out.strip()


def note_words(traces: Traces, message: Ended) -> None:
    """Record the output of a command."""
    assert message.code == 0, message
    traces.note("a command", message.out + message.err)


def note_arguments(traces: Traces, running: Running) -> None:
    """Record the public data of the process, which any user of the machine can read."""
    traces.note("the process's arguments", Path(f"/proc/{running.process.pid}/cmdline").read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", pytest.param("json", marks=pytest.mark.slow)])
def test_no_secret_is_left_anywhere_after_a_whole_journey(tmp_path: Path, form: str) -> None:
    traces = Traces()
    box(tmp_path, f'{LOOPBACK}[logging]\nlevel = "debug"\nformat = "{form}"\n')
    with lares(tmp_path, "run") as running:
        running.url()
        first = (tmp_path / "data" / "first-key").read_text().strip()
        traces.secrets.add(first)
        journey(traces, tmp_path, running, first)
        owner = keep(traces, ended(tmp_path, "key", "reset-master"))
        traces.secrets.add(owner)
        use(traces, running.url(), first, is_good=False)
        use(traces, running.url(), owner, is_good=True)
        stopped = running.stop()
        note_words(traces, stopped)
        assert (form == "json") == stopped.err.startswith("{")
    again = keep(traces, ended(tmp_path, "key", "reset-master"))
    traces.secrets.add(again)
    with lares(tmp_path, "run") as running:
        use(traces, running.url(), owner, is_good=False)
        journey(traces, tmp_path, running, again)
        note_words(traces, running.stop())
    for file in tmp_path.glob("*.out"):  # the command prints the secret for people; the secret was checked above
        file.unlink()
    traces.note_files(tmp_path)
    assert len(traces.secrets) >= 15 and len(traces.texts) > 100
    assert any(b"$argon2id$" in text for where, text in traces.texts.items() if "unpacked" in where)
    assert not list(traces.finds())


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", ["configuration", *(pytest.param(way, marks=pytest.mark.slow) for way in ("variable", "file"))]
)
def test_a_configured_master_key_is_only_in_its_file(tmp_path: Path, way: str) -> None:
    traces, variables, kept = Traces(secrets={OWN}), {}, None
    box(tmp_path, f'{LOOPBACK}[logging]\nlevel = "debug"\n')
    if way == "variable":
        variables = {"LARES_MASTER_KEY": OWN}
    elif way == "file":
        kept = tmp_path / "secret"
        kept.write_text(f"{OWN}\n")
        variables = {"LARES_MASTER_KEY_FILE": str(kept)}
    else:
        kept = tmp_path / "config" / "default.toml"
        box(tmp_path, f'{LOOPBACK}[auth]\nmaster_key = "{OWN}"\n[logging]\nlevel = "debug"\n')
    with lares(tmp_path, "run", variables=variables) as running:
        journey(traces, tmp_path, running, OWN)
        refused = ended(tmp_path, "key", "reset-master", **variables)
        assert refused.code == 64
        traces.note("the refusal", refused.out + refused.err)
        note_words(traces, running.stop())
    for file in (*tmp_path.glob("*.out"), *([kept] if kept else [])):
        file.unlink()
    traces.note_files(tmp_path)
    assert not list(traces.finds())
