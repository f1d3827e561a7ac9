"""Fixtures for the tests of commands."""

from __future__ import annotations

import pytest

from tests.cli.commands import Command


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsys, monkeypatch)
