# ruff: noqa: SLF001 - the loop has no other place to measure
"""The longest turn of an event loop: processor time of its thread, and the callback that took most of it.

`python -m benchmarks._turns FILE run` is `lares run`, and keeps the longest turn of its loop in the file.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import tempfile
import time
from asyncio import events
from asyncio.base_events import BaseEventLoop
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from appliance.cli.main import main as lares
from benchmarks._frame import Row, Sample

MAX_TURN_MS = 20


class LongestTurn:
    """The longest turn since `reset`: milliseconds, and what took most of it. `on_longer` is called with each."""

    def __init__(self, on_longer: Callable[[], object] = lambda: None) -> None:
        self.ms, self.cause = 0.0, ""
        self._on_longer = on_longer
        self._part = (0.0, "")

    def reset(self) -> None:
        """Forget the turns so far."""
        self.ms, self.cause = 0.0, ""

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Measure the turns of every loop within the context."""
        handles: Any = events.Handle
        loops: Any = BaseEventLoop
        run, run_once = handles._run, loops._run_once

        def timed_run(handle: Any) -> None:
            began = time.thread_time()
            run(handle)
            self._part = max(self._part, (1000 * (time.thread_time() - began), _name(handle)))

        def timed_run_once(loop: BaseEventLoop) -> None:
            self._part, began = (0.0, ""), time.thread_time()
            run_once(loop)
            if (took := 1000 * (time.thread_time() - began)) > self.ms:
                self.ms, self.cause = took, "{1} ({0:.1f} ms)".format(*self._part)
                self._on_longer()

        handles._run, loops._run_once = timed_run, timed_run_once
        try:
            yield
        finally:
            handles._run, loops._run_once = run, run_once

    def sample(self, when: str) -> Sample:
        """Its row, with the cause."""
        return sample_of(when, self.ms, self.cause)


@contextlib.contextmanager
def watched_hub() -> Iterator[tuple[Sequence[str], Callable[[str], Sample]]]:
    """A command that runs a hub within the context, and what gives the sample of its longest turn so far.

    SIGUSR1 forgets the turns so far, such as those of a start.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "longest"
        yield (
            (sys.executable, "-m", "benchmarks._turns", str(file)),
            lambda when: sample_of(when, *json.loads(file.read_text())),
        )


def sample_of(when: str, ms: float, cause: str) -> Sample:
    """The row of a longest turn; its cause is told in any case."""
    print(f"{when}: longest turn {ms:.1f} ms, most of it {cause}", file=sys.stderr)
    label = f"{when}: longest turn of the loop, processor time"
    return Row(label=label, unit="ms", at_most=MAX_TURN_MS, why=f"most of it was {cause}").sample(ms)


def _name(handle: Any) -> str:
    callback = handle._callback
    owner = getattr(callback, "__self__", None)
    return owner.get_name() if isinstance(owner, asyncio.Task) else getattr(callback, "__qualname__", repr(callback))


def main(file: Path, arguments: list[str]) -> None:
    """Run the hub; SIGUSR1 forgets the turns so far."""
    longest = LongestTurn(lambda: file.write_text(json.dumps([longest.ms, longest.cause])))
    signal.signal(signal.SIGUSR1, lambda *_: longest.reset())
    sys.argv[1:] = arguments
    with longest.watched():
        sys.exit(lares())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
