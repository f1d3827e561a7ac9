"""`lares clock trust` beside a hub that runs: the hub is told through its socket, and remembers it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_backup import ask, home
from tests.cli.test_commands_line import LOOPBACK, ROOT, WITH_KEY, ended, lares

LATER = "2099-01-01T00:00:00.000Z"
WRONG: dict[str, Any] = {"counter/card": {"bytes_written": 0, "syncs": 0, "since": LATER, "at": LATER}}


@pytest.fixture
def unsynchronised(tmp_path: Path) -> dict[str, str]:
    """An environment whose Python lacks what asks the kernel whether the clock is synchronised, as a router's may."""
    folder = tmp_path / "python"
    folder.mkdir()
    (folder / "ctypes.py").write_text("raise ImportError('there is none on this box')\n")
    return {**WITH_KEY, "PYTHONPATH": f"{folder}:{ROOT}"}


def test_a_hub_that_runs_trusts_its_clock_from_then_on_and_after_a_restart(
    tmp_path: Path, unsynchronised: dict[str, str]
) -> None:
    home(tmp_path, WRONG, LOOPBACK)
    with lares(tmp_path, variables=unsynchronised) as hub:
        clock = ask(hub.url(), "GET", "/diagnostics")["clock"]
        assert (clock["trusted"], clock["trusted_after"]) == (False, LATER)
        result = ended(tmp_path, "clock", "trust")
        assert result.code == 0 and result.out.startswith("the clock is trusted: 20"), result
        clock = ask(hub.url(), "GET", "/diagnostics")["clock"]
        assert (clock["trusted"], clock["waits_because"], clock["forgotten"]) == (True, None, LATER)
        hub.stop()
    with lares(tmp_path, variables=unsynchronised) as hub:
        assert ask(hub.url(), "GET", "/diagnostics")["clock"]["trusted"] is True
        hub.stop()
