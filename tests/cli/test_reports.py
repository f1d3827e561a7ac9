"""`lares status`, `why`, `log`, `completion`, and `help` answer questions on the hub's machine. Shells complete
commands."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from aiohttp import web

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.cli import hub_client, terminal
from appliance.cli.arguments import build_parser
from appliance.cli.exit_codes import EXIT_CODES
from appliance.cli.help import EXAMPLES, subcommands
from appliance.cli.hub_client import HubRequest
from appliance.cli.terminal import size, span
from appliance.errors import StartFailed
from appliance.store.lock import DirectoryLock
from tests.cli.commands import asked, ended
from tests.fakes.app import LIGHT
from tests.fakes.process import ROOT, Process, configure, light_section, running
from tests.fakes.programs import need
from tests.fakes.rows import each_row

pytestmark = pytest.mark.slow

AUTOMATION = """
return {
  id = "follow", name = "Follow",
  trigger = { type = "device_state_change", device_id = "elgato_lights:light:0", attribute = "power" },
  conditions = {
    { type = "device_state", device_id = "elgato_lights:light:0", attribute = "brightness", above = 60 },
  },
  execute = function(ctx)
    ctx:log("info", "dims", { night = true, lamps = { false } })
    ctx:command("elgato_lights:light:0", { capability = "brightness", action = "set", value = 70 })
  end,
}
"""


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Process]:
    """Run a hub with a light that was switched off and dimmed, and an automation whose condition was false."""
    (tmp_path / "config" / "automations").mkdir(parents=True)
    (tmp_path / "config" / "automations" / "follow.lua").write_text(AUTOMATION)
    async with LightSimulator() as light:
        off = '[adapters.desk]\ntype = "roku_tv"\nenabled = false\n[scenes]\nenabled = false\n'
        off += '[locale]\ntimezone = "Pacific/Kiritimati"\n'
        configure(tmp_path, light_section(light.url) + off)
        async with running(tmp_path) as process:
            await process.ready()
            for capability, action, value in (
                ("power", "on", None),
                ("brightness", "set", 10),
                ("color_temperature", "set", {"value": 4000, "unit": "kelvin"}),
                ("power", "off", None),
            ):
                body = {"capability": capability, "action": action, "value": value}
                assert await process.post(f"/devices/{LIGHT}/command", **body) == 200
            yield process


async def test_status_why_and_log_answer_in_words_and_as_json(hub: Process, tmp_path: Path) -> None:
    shown = await asked(tmp_path, "status")
    assert shown.code == 0, shown.err
    for sentence in (
        r"Lares \S+, up \d",
        r"elgato_lights  running, last answer \d",
        "devices: 1, offline: 0",
    ):
        assert re.search(sentence, shown.out), shown.out
    assert re.search(r"follow  armed, last skipped at .* \(condition 1: ", shown.out), shown.out
    assert re.search(r"card: \d+\.\d kB written today", shown.out) and "\x1b" not in shown.out
    status = json.loads((await asked(tmp_path, "status", "--json")).out)
    assert status["safe"] is None and status["adapters"][0]["name"] == "elgato_lights" and status["memory_bytes"] > 0

    why = (await asked(tmp_path, "why", "follow")).out
    assert "did not run (device_state_change): condition 1: " in why and "it waits for its trigger" in why
    lamp = (await asked(tmp_path, "why", LIGHT)).out
    assert 'device sent color_temperature set {"value": 4000, "unit": "kelvin"}: ok' in lamp
    assert "device sent power off: ok" in lamp
    assert "it has been online since" in lamp and "adapter elgato_lights" in lamp
    reply: dict[str, Any] = json.loads((await asked(tmp_path, "why", LIGHT, "--json")).out)
    assert reply["kind"] == "device" and 1 < len(reply["decisions"]) <= 10
    times = [each["at"] for each in reply["decisions"]]
    assert times == sorted(times, reverse=True)
    file = tmp_path / "config" / "automations" / "follow.lua"
    file.write_text(file.read_text() + "\n")
    outdated = (
        "config/automations/follow.lua was changed, but the previous version still runs; to load the change, run "
        "`lares reload`"
    )
    assert (await hub.get("/why?id=follow"))["summary"][0] == outdated
    (tmp_path / "config" / "automations" / "dusk.lua").write_text('return {\n id = "dim_hall", mod = 1 }')
    for word in ("dim_hall", "dusk"):
        missing = (await hub.get(f"/why?id={word}"))["summary"]
        assert missing[0].startswith("it is not loaded: config/automations/dusk.lua:1: execute is missing")
        assert "run `lares reload`" in missing[-1]
    assert await hub.post("/automations/reload") == 200
    prevented = "the previous version still runs, because the latest reload failed: config/automations/dusk.lua:1: "
    assert (await hub.get("/why?id=follow"))["summary"][0].startswith(prevented)
    assert "its adapter elgato_lights is running" in (await hub.get("/why?id=elgato_lights"))["summary"]
    nobody = await asked(tmp_path, "why", "nobody")
    assert (nobody.code, nobody.out) == (67, "") and "automation 'nobody' not found" in nobody.err
    assert "; scenes.enabled is false in the configuration; " in nobody.err
    for word in ("desk", "desk:tv"):
        [off] = (await hub.get(f"/why?id={word}"))["summary"]
        assert off == "[adapters.desk] has enabled = false; set it to true, then run `lares reload`"

    log = (await asked(tmp_path, "log")).out
    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d info    hub: Lares \S+ starts config=", log, re.MULTILINE)
    assert (await asked(tmp_path, "log", "--contains", "listening at")).out.count("\n") == 1
    assert (await asked(tmp_path, "log", "--level", "error")).out == ""
    unknown = await asked(tmp_path, "log", "--part", "nope")
    assert (unknown.code, unknown.out) == (0, "")
    assert re.fullmatch(r"the log has no lines of the part 'nope'; it has [\w, ]*\bhub\b[\w, ]*\n", unknown.err)
    assert (await asked(tmp_path, "log", "--part", "hub", "--level", "error")).err == ""
    line = json.loads((await asked(tmp_path, "log", "--part", "hub", "--lines", "1", "--json")).out)
    assert line["part"] == "hub" and line["at"].endswith("Z")
    here = datetime.fromisoformat(line["at"]).astimezone(ZoneInfo("Pacific/Kiritimati"))
    printed = (await asked(tmp_path, "log", "--part", "hub", "--lines", "1")).out
    assert printed.startswith(here.strftime("%Y-%m-%d %H:%M:%S ")), "the time in the home's zone"
    assert await hub.post(f"/devices/{LIGHT}/command", capability="brightness", action="set", value=70) == 200
    assert await hub.post("/automations/follow/execute") == 200
    log = (await asked(tmp_path, "log", "--contains", "dims")).out
    assert "dims lamps=[false] night=true automation=follow" in log


async def test_a_followed_log_continues_with_new_lines(hub: Process, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "appliance", "log", "-f", "--lines", "1", "--contains", "reload requested"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    follower = await asyncio.create_subprocess_exec(
        *command, cwd=tmp_path, env=environment, stdout=asyncio.subprocess.PIPE
    )
    assert follower.stdout is not None
    hub.popen.send_signal(signal.SIGHUP)
    async with asyncio.timeout(30):
        assert b"reload requested" in await follower.stdout.readline()
    follower.terminate()
    await follower.communicate()


def test_without_a_hub_each_command_reports_it(tmp_path: Path) -> None:
    for arguments in (("status",), ("why", "x"), ("log",)):
        done = ended(tmp_path, *arguments)
        assert (done.code, done.out) == (69, "") and "no hub runs on" in done.err, arguments
    (tmp_path / "data").mkdir()
    lock = DirectoryLock(tmp_path / "data")
    done = ended(tmp_path, "status")
    lock.release()
    assert done.code == 69 and f"process {os.getpid()} uses {tmp_path}/data, but does not listen" in done.err


@pytest.mark.parametrize("lives", [False, True])
def test_hanging_and_busy_hubs_are_distinguished(tmp_path: Path, lives: bool) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "control.sock"))
        door.listen()

        def serve() -> None:
            asked, probe = door.accept()[0], door.accept()[0]
            with asked, probe:
                for peer in (probe, asked) if lives else ():
                    assert peer.recv(1000).startswith(b"GET /")
                    peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]")
                while probe.recv(1000):
                    pass

        server = threading.Thread(target=serve)
        server.start()
        if lives:
            assert hub_client.ask(tmp_path, HubRequest(path="/slow")) == []
        else:
            with pytest.raises(StartFailed, match="runs but does not answer"):
                hub_client.ask(tmp_path, HubRequest(path="/slow"))
        server.join()


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [
        (400, "stopping", 75),
        (400, "busy", 75),
        (400, "device_unreachable", 69),
        (400, "invalid_value", 64),
        (501, "unsupported", 64),
    ],
)
def test_a_refusal_of_a_stopping_hub_is_reported(tmp_path: Path, status: int, code: str, exit_code: int) -> None:
    body = json.dumps({"error": "why", "code": code})
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "control.sock"))
        door.listen()

        def serve() -> None:
            with door.accept()[0] as asked:
                door.close()
                asked.recv(1000)
                time.sleep(4.0 if code == "stopping" else 0.0)
                asked.sendall(f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())

        server = threading.Thread(target=serve)
        server.start()
        with pytest.raises(StartFailed, match="why") as refused:
            hub_client.ask(tmp_path, HubRequest(path="/adapters/phone/operations/send", method="POST"))
        assert refused.value.exit_code == exit_code
        server.join()


@each_row(("count", "text"), [(0, "0.0 kB"), (99_999, "100.0 kB"), (12_345_678, "12.3 MB")])
def test_sizes_are_shown_for_people(count: int, text: str) -> None:
    assert size(count) == text


@each_row(("secs", "text"), [(0.4, "0 s"), (61, "1 min 1 s"), (86_400, "1 d"), (266_461, "3 d 2 h")])
def test_durations_have_two_units(secs: float, text: str) -> None:
    assert span(secs) == text


def commands() -> dict[str, Any]:
    """Return the parser of each command, including `key create`."""
    found = dict(subcommands(build_parser()))
    for name, parser in list(found.items()):
        found.update({f"{name} {inner}": each for inner, each in subcommands(parser).items()})
    return found


def test_every_command_shows_examples_that_can_be_typed() -> None:
    assert set(commands()) == set(EXAMPLES)
    whole = build_parser()
    for name, parser in commands().items():
        for example in EXAMPLES[name]:
            words = shlex.split(example.partition(">")[0])
            assert words[0] == "lares"
            whole.parse_args(words[1:])
            assert example in parser.format_help()


def test_every_command_takes_a_configuration_and_a_data_directory() -> None:
    parser = build_parser()
    for name in set(commands()) - {"completion", "help"}:
        words = shlex.split(EXAMPLES[name][0].partition(">")[0])[1:]
        read = parser.parse_args([*words, "--config", "here.toml", "--data-dir", "there"])
        assert (str(read.config), str(read.data_dir)) == ("here.toml", "there"), name


def test_help_explains_commands_and_lists_every_exit_code(tmp_path: Path) -> None:
    assert "Lares" in ended(tmp_path, "help").out or "COMMAND" in ended(tmp_path, "help").out
    assert "examples:\n  lares simulate" in ended(tmp_path, "help", "simulate").out
    listed = ended(tmp_path, "help", "exit-codes").out
    assert {int(line[:3]) for line in listed.splitlines()} == set(EXIT_CODES)
    assert "--hook" in ended(tmp_path, "help", "key", "create").out
    for words in (["nonsense"], ["key", "nonsense"], ["check", "nonsense"]):
        result = ended(tmp_path, "help", *words)
        assert result.code == 64 and f"unknown command '{' '.join(words)}'" in result.err
    files = (each for each in (ROOT / "appliance").rglob("*.py") if each.parent.name != "lua_worker")
    texts = (file.read_text() for file in files)
    used = {getattr(os, name) for text in texts for name in re.findall(r"\bos\.(EX_[A-Z]+)", text)}
    assert used and used <= set(EXIT_CODES)


COMPLETED = {
    "lares st": {"status"},
    "lares key cr": {"create"},
    "lares key create --la": {"--label"},
    "lares --config x.toml sim": {"simulate"},
    "lares log --fo": {"--follow"},
    "lares completion f": {"fish"},
    "lares simulate --events lares.b": {"lares.bash"},
    "lares --events x simulate --r": {"--run"},
    "lares demo --keep ho": {"homes"},
    "lares key --hook x cr": {"create"},
}
"""Typed words, and the shell's suggestions."""


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    bash, script = need("bash"), tmp_path / "lares.bash"
    script.write_text(ended(tmp_path, "completion", "bash").out)
    (tmp_path / "homes").mkdir()
    for typed, offered in COMPLETED.items():
        words = typed.split(" ")
        asked = f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _lares; echo ${{COMPREPLY[@]}}"
        command = [bash, "-c", f". {script}; {asked}"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30)
        assert set(done.stdout.split()) == offered and done.stderr == "", typed


def test_only_slow_steps_show_progress_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with terminal.progress("writing"):
        pass
    assert capsys.readouterr().err == "", "no terminal"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    shown = ""
    with terminal.progress("writing"):
        deadline = time.monotonic() + 30
        while "writing" not in shown and time.monotonic() < deadline:
            shown += capsys.readouterr().err
    assert "\rwriting " in shown and capsys.readouterr().err.endswith("\r\x1b[K")


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert terminal.paint("x", "red") == "x", "no terminal"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert terminal.visible(f"\x1b[31m{terminal.paint('x', 'red')}") == "\\x1b[31m\x1b[31mx\x1b[0m"
    monkeypatch.setenv("COLUMNS", "5")
    assert terminal.visible(terminal.fit(f"a\n{terminal.paint('bcd', 'red')}")) == "a\\n\x1b[31mbc\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.paint("x", "red") == "x"


def test_zsh_and_fish_complete_every_command(tmp_path: Path) -> None:
    for shell in ("zsh", "fish"):
        script = ended(tmp_path, "completion", shell).out
        for command in commands():
            assert command.split()[-1] in script, (shell, command)
    assert ended(tmp_path, "completion", "tcsh").code == 64


TOKEN = "token-of-the-telephone"


@asynccontextmanager
async def phone(folder: Path, status: int) -> AsyncIterator[list[tuple[str, str]]]:
    """Run a hub with a section whose server answers with this status. Yield the list of the server's requests."""
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


async def test_a_message_is_sent_or_collected_and_a_wrong_section_named(tmp_path: Path) -> None:
    async with phone(tmp_path, 204) as received:
        sent = await asked(tmp_path, "notify", "phone", "It 'works' \x1b[31m", "--title", "Try")
        assert (sent.code, sent.out, sent.err) == (0, "phone: sent\n", "")
        assert received == [(f"/{TOKEN}", "Try: It 'works' \x1b[31m")]
        unknown = await asked(tmp_path, "notify", "fone", "x")
        assert (unknown.code, unknown.out) == (67, "") and "adapter 'fone' not found" in unknown.err
        assert (await asked(tmp_path, "notify", "phone", "two")).out == "phone: gathered\n"
        assert len(received) == 1
        assert (await asked(tmp_path, "notify", "phone:send", "three")).out == "phone:send: gathered\n"
        other = await asked(tmp_path, "notify", "phone:ring", "x")
        assert other.code == 64 and "phone has no operation 'ring'; its operations are " in other.err
    for section in ("", ":send"):
        assert "the section is empty" in ended(tmp_path, "notify", section, "x").err
    nobody = ended(tmp_path, "notify", "phone", "x")
    assert nobody.code == 69 and "start one with `lares run`" in nobody.err


async def test_an_error_has_the_reason_without_the_token(tmp_path: Path) -> None:
    async with phone(tmp_path, 503) as received:
        failed = await asked(tmp_path, "notify", "phone", "It works")
        assert failed.code == 69 and "three attempts failed" in failed.err and "503" in failed.err
        assert TOKEN not in failed.err and len(received) == 3
        assert TOKEN not in (await asked(tmp_path, "log")).out
        for arguments, sentence in (
            (("phone", " "), "needs a non-empty message"),
            (("phone", "x" * 5000), "4096 characters"),
            (("phone",), "TEXT"),
        ):
            refused = await asked(tmp_path, "notify", *arguments)
            assert refused.code == 64 and refused.out == "", (arguments, refused)
            assert sentence in refused.err and "Traceback" not in refused.err, (arguments, refused.err)
