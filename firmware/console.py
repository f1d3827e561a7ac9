"""Prints the messages of build.py and runs its commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

USAGE_ERROR, UNAVAILABLE, IO_ERROR = 64, 69, 74  # exit codes of sysexits.h


class BuildFailed(Exception):
    """Raised to end build.py with an error message, an exit code, and the last lines of a tool's output."""

    def __init__(self, sentence: str, code: int, *, lines: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.code, self.lines = code, lines


def say(text: str, *, is_transient: bool = False) -> None:
    """Print a line. On a terminal, the next line overwrites a transient line."""
    if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        print("\r\x1b[K" + text, end="" if is_transient else "\n", flush=True)
    else:
        print(text, flush=True)


def report_failure(sentence: str, *, lines: Sequence[str] = ()) -> None:
    """Print a tool's lines and the error message on standard error."""
    if sys.stdout.isatty():
        say("", is_transient=True)
    print(*lines, f"build.py: {sentence}", sep="\n", file=sys.stderr, flush=True)


def run_captured(
    command: Sequence[str], *, on_line: Callable[[str], None] = lambda line: None, **options: Any
) -> tuple[int, list[str]]:
    """Run a command without showing its output, and return its exit code and all output lines. Call `on_line` with
    each line when it arrives.

    The command has its own process group, so that an interruption ends all of its processes.
    """
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    lines = []
    with subprocess.Popen(command, text=True, errors="replace", process_group=0, **pipes, **options) as child:
        try:
            for line in child.stdout or ():
                lines.append(line.rstrip())
                on_line(lines[-1])
            return child.wait(), lines
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
            child.wait()
            raise


def run_visible(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> int:
    """Run a command in this terminal, and return its exit code. Only the command handles Ctrl-C."""
    with subprocess.Popen(command, cwd=folder, env=variables) as child:
        while child.poll() is None:
            try:
                child.wait()
            except KeyboardInterrupt:
                if not sys.stdin.isatty():  # if the signal came from a terminal, the child has also received it
                    child.send_signal(signal.SIGINT)
            except SystemExit:
                child.terminate()
                raise
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def end_on_sigterm() -> None:
    """On SIGTERM, end this process cleanly, and also end the running command."""

    def end(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
