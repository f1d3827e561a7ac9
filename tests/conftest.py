"""Fixtures and limits for all tests."""

from __future__ import annotations

import faulthandler
import gc
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.fakes import contract_recorder, forked
from tests.fakes.app import App, open_app
from tests.fakes.clock import VirtualClock

# Print details of assertions in the tests' shared modules too, except in the modules imported above.
pytest.register_assert_rewrite(
    *(f"tests.{folder.name}" for folder in Path(__file__).parent.iterdir() if folder.name != "fakes")
)

# If the environment forbids bytecode, store compiled modules nevertheless, because hundreds of processes import them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell makes background processes ignore Ctrl-C. The hubs of the tests must not inherit this setting.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# By default, Hypothesis searches all imported modules for constants. The search takes seconds in each process, and
# each import changes the examples.
vars(providers)["is_local_module_file"] = lambda _: False

EXAMPLES, QUICK_EXAMPLES = 200, 10
"""The number of Hypothesis examples in a slow run, and in a quick run."""

# Hypothesis uses the same examples in every run. A busy machine is not an error.
settings.register_profile(
    "whole", max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("whole"), max_examples=QUICK_EXAMPLES)

LIMIT_SECS, SLOW_LIMIT_SECS, BOX_LIMIT_SECS = 300, 1500, 4 * 3600
"""Maximum seconds of a test with its fixtures. If a test takes longer, the test process ends."""

ALL_SLOW = re.compile(r"^pytestmark = (?:pytest\.mark\.slow$|\[.*pytest\.mark\.slow\b)", re.MULTILINE)
"""A line that marks all tests of its file as slow."""

ALARM = SimpleNamespace(limit=0, since=0.0)
"""The current limit and the time at which it began. Several short tests share one limit."""

WITHOUT_SLOW = re.compile(r"\bnot (?:\([^()]*\b)?slow\b")
"""A mark expression that excludes the slow tests, such as `not slow` or `not (box or slow)`."""

SEEN = "lares/contract_recorder"
"""The key in pytest's cache for the records of a failed run."""

FAULT = pytest.StashKey[str]()
"""The fault that the contract recorder has found in this run."""


def pytest_configure(config: pytest.Config) -> None:
    """If only the quick tests run, let Hypothesis try fewer examples."""
    settings.load_profile("quick" if WITHOUT_SLOW.search(config.option.markexpr) else "whole")
    gc.disable()  # collecting tests creates no garbage, so garbage collection starts afterwards


# Tests start hundreds of Lua workers, but only a few tests check how a worker starts.
forked.fork_workers()


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Restore the loggers that commands in this process configure."""
    root, adapters = logging.getLogger(), logging.getLogger("adapters")
    handlers, levels = root.handlers[:], (root.level, adapters.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    adapters.setLevel(levels[1])


@pytest.fixture
def whole_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Like an installed hub, start each Lua worker with a separate interpreter."""
    monkeypatch.setattr(subprocess, "Popen", forked.ForkingPopen.__base__)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def app() -> AsyncIterator[App]:
    async with open_app() as opened:
        yield opened


@pytest.fixture
async def broker(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    """Provide a running MQTT broker: the fake broker, or the one that `both_brokers` selects."""
    from tests.adapters.mqtt.broker import KINDS, running

    async with running(KINDS[getattr(request, "param", "own")](tmp_path)) as started:
        yield started


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Provide a folder that every user can enter, unlike pytest's temporary folders."""
    with tempfile.TemporaryDirectory(prefix="lares-open-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def minutes_of(item: pytest.Item) -> float:
    marker = item.get_closest_marker("slow")
    minutes: float = marker.kwargs.get("minutes", 0) if marker else 0
    return minutes


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """For the quick tests, do not import files of slow tests unless the command names a file."""
    is_quick = WITHOUT_SLOW.search(config.option.markexpr) and not any(".py" in each for each in config.args)
    if is_quick and collection_path.suffix == ".py" and ALL_SLOW.search(collection_path.read_text(encoding="utf-8")):
        return True
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Record the files of this run, and give each process a share of the longest tests.

    Each process begins with one part of the list, and later takes tests from the end of another part. As a result, no
    process starts a long test when the others have ended, and most tests of a file share one browser, hub, or worker.
    """
    contract_recorder.FILES.update(str(item.path) for item in items)
    long = sorted((item for item in items if minutes_of(item)), key=minutes_of, reverse=True)
    rest = [item for item in items if not minutes_of(item)]
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    parts = []
    for number in range(processes):
        share, size = long[number::processes], (len(items) + number) // processes
        parts += [*share, *rest[: size - len(share)]]
        del rest[: max(0, size - len(share))]
    items[:] = [*parts, *rest]


def pytest_collection_finish() -> None:
    """Exclude the thousands of test objects from later garbage collections."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """If the test exceeds its limit, end the process and print the line of each thread."""
    limits = {"box": BOX_LIMIT_SECS, "musl": SLOW_LIMIT_SECS, "slow": SLOW_LIMIT_SECS}
    limit = next((secs for marker, secs in limits.items() if item.get_closest_marker(marker)), LIMIT_SECS)
    if ALARM.limit != limit or time.monotonic() - ALARM.since > limit / 10:  # each alarm is a thread
        ALARM.limit, ALARM.since = limit, time.monotonic()
        faulthandler.dump_traceback_later(limit, exit=True, file=item.config.stash[fault_handler_stderr_fd_key])
    return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """If all tests passed, let the contract recorder judge the run. If there are several processes, each worker sends
    its records to the main process.

    A failed run also saves its records for the run that repeats the failed tests.
    """
    faulthandler.cancel_dump_traceback_later()
    forked.close()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["contract_recorder"] = contract_recorder.hand_on()
        return
    option, cache = session.config.option, getattr(session.config, "cache", None)
    if cache is not None and session.exitstatus == pytest.ExitCode.TESTS_FAILED:
        cache.set(SEEN, contract_recorder.hand_on())
    if cache is not None and option.lf and option.last_failed_no_failures == "none":
        contract_recorder.take(cache.get(SEEN, None))
    is_whole = session.exitstatus == pytest.ExitCode.OK and not (option.keyword or option.collectonly)
    if is_whole and (fault := contract_recorder.verdict()) is not None:
        session.config.stash[FAULT] = fault
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the records of a worker process."""
    contract_recorder.take(getattr(node, "workeroutput", {}).get("contract_recorder"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the fault that the contract recorder found."""
    if (fault := terminalreporter.config.stash.get(FAULT, None)) is not None:
        terminalreporter.section("the contract recorder")
        terminalreporter.line(fault, red=True)
