"""What the process knows of the single file that it came from."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from types import ModuleType

import pytest

from appliance.cli import single_file
from appliance.cli.main import main
from tests.fakes.clock import VirtualClock
from tests.fakes.patience import until

TARGETS = ("cpython-311-aarch64-linux-gnu", "cpython-311-x86_64-linux-musl")


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that were done, of a process that came from a single file."""
    steps: list[str] = []
    file, settle = ModuleType("lares_file"), ModuleType("lares_settle")
    vars(file)["TARGETS"] = TARGETS
    for step in ("seal", "remove_old_versions"):
        vars(settle)[step] = lambda: steps.append(threading.current_thread().name)
    monkeypatch.setitem(sys.modules, "lares_file", file)
    monkeypatch.setitem(sys.modules, "lares_settle", settle)
    return steps


@pytest.mark.usefixtures("settled")
def test_the_version_lists_each_target_that_the_file_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.splitlines()[3:] == ["this file holds", *(f"  {each}" for each in TARGETS)]


async def test_what_was_compiled_is_kept_soon_and_old_versions_go_after_a_minute(
    settled: list[str],
) -> None:
    clock = VirtualClock()
    tidying = asyncio.ensure_future(single_file.finish_upgrade(clock))
    await clock.advance(2.9, sleepers=1)
    assert not settled
    await clock.advance(0.2, sleepers=1)
    await until(lambda: settled == ["seal"])
    await clock.advance(56.8, sleepers=1)
    assert settled == ["seal"]
    await clock.advance(0.2, sleepers=0)
    await tidying
    await until(lambda: sorted(settled) == ["remove_old_versions", "seal", "seal"])


async def test_what_cannot_be_tidied_is_said(settled: list[str], caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise OSError(30, "Read-only file system")

    vars(sys.modules["lares_settle"])["remove_old_versions"] = fail
    clock = VirtualClock()
    with caplog.at_level(logging.WARNING):
        await clock.run(single_file.finish_upgrade(clock))
        await until(lambda: caplog.messages)
    assert caplog.messages == ["cannot remove earlier versions: [Errno 30] Read-only file system"]


async def test_a_process_that_came_from_elsewhere_has_nothing_to_tidy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lares_file", raising=False)
    assert single_file.list_targets() == ()
    await single_file.finish_upgrade(VirtualClock())
