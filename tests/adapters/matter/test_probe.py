"""`lares doctor` identifies the server. `lares check` warns of a server on another machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from appliance import config
from appliance.adapters.matter.kind import Matter
from appliance.adapters.matter.probe import probe
from appliance.adapters.matter.simulator import MatterSimulator
from tests.cli.commands import Command
from tests.cli.test_doctor import Findings
from tests.fakes.rows import each_row


async def _ask(server: MatterSimulator) -> tuple[bool, str]:
    settings = Matter(url=f"ws://127.0.0.1:{server.port}/ws")
    is_well, sentence = await asyncio.to_thread(probe, settings)
    return is_well, sentence.replace(settings.url, "URL")


async def test_the_version_and_schema_of_a_server_are_found() -> None:
    async with MatterSimulator() as server:
        message = "the Matter server at URL answers: SDK '2025.7.0', schema 11, without Bluetooth"
        assert await _ask(server) == (True, message)
        server.info["schema_version"] = 5
        old = "the Matter server speaks schema 5, but Lares needs 9 or later; update the server"
        assert await _ask(server) == (False, old)
        server.faults.status = 404
        assert await _ask(server) == (False, "URL is not a Matter server: its /info responds with status 404")
        server.faults.status, server.faults.body = None, b"{"
        assert await _ask(server) == (False, "URL answered with something that is not JSON")
        await server.unplug()
        refused = "URL does not answer (connection refused); is the Matter server running? See docs/matter.md"
        assert await _ask(server) == (False, refused)


@each_row("url", ["ws://127.0.0.1:5580/ws", "ws://localhost:5580/ws", "wss://[::1]/ws"])
def test_a_server_on_this_machine_is_not_a_risk(url: str) -> None:
    assert config.parse(f'[adapters.matter]\nurl = "{url}"\n', "home.toml", {}).warnings == ()


def test_a_server_at_another_machine_is_a_warning_of_check_and_doctor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config" / "default.toml"
    file.parent.mkdir()
    file.write_text('[adapters.upstairs]\ntype = "matter"\nurl = "ws://192.0.2.1:1/ws"\n')
    risk = "that server has no password, so every program that reaches its port can open the locks"
    reported = f"names a server on another machine; {risk}"
    [warning] = config.load(file, {}).warnings
    assert warning == f"{file}:3: adapters.upstairs.url {reported}"
    assert Findings(Command(capsys, monkeypatch)(tmp_path, "doctor")).of("adapter")[0] == (
        "care",
        f"upstairs: url {reported}",
    )
