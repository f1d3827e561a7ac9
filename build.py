#!/usr/bin/env python3
"""Builds, tests, and runs a fresh clone with only Python 3.11; see `python3 build.py --help`."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - an older Python must read as far as this sentence
    sys.stderr.write(
        "build.py: Lares needs Python 3.11 or newer, but {} is {}.{}.{}; "
        "use a newer Python, for example `python3.11 build.py`\n".format(sys.executable, *sys.version_info[:3])
    )
    sys.exit(69)

# The imports below need Python 3.11. Python 3.6 must be able to run the lines above, which print an error message.

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from firmware import checks, locks, pack, parts, pip, pythons, targets, wheels
from firmware.checkout_venv import CheckoutVenv, check_venv
from firmware.console import (
    IO_ERROR,
    USAGE_ERROR,
    BuildFailed,
    end_on_sigterm,
    report_failure,
    run_visible,
    say,
)
from firmware.digest import sha256_of

ROOT = Path(__file__).resolve().parent
CHECKOUT_VENV = CheckoutVenv(ROOT)

USAGE = """\
usage: python3 build.py [COMMAND]

  pyz [--target TAG ...]   make dist/lares.pyz (the default), or a smaller file for each target
  demo [ARG ...]           run the hub with a simulated light, TV, and Matter server; ARGs go to the demo
  test [--slow] [--coverage] [ARG ...]
                           check lint, types, and tests; --slow adds the long proofs, --coverage lists the
                           branches without a test, ARGs go to pytest
  bench [NAME ...]         measure the hub and write benchmarks/RESULTS.md
  lock [--upgrade]         rewrite firmware/runtime.lock and test.lock from pyproject.toml (for maintainers)

pyz keeps downloads in $BUILD_PY_CACHE, $XDG_CACHE_HOME, or build/.
demo, test, and bench first make .venv if it is missing, outdated, or damaged: demo from firmware/runtime.lock,
test and bench from firmware/test.lock.
"""


def pyz(arguments: Sequence[str]) -> int:
    """Build the single file for all targets, or one file per named target."""
    tags = list(arguments[1::2])
    if len(arguments) % 2 or any(word != "--target" for word in arguments[::2]):
        raise BuildFailed("pyz accepts only --target TAG, once or more", USAGE_ERROR)
    check_venv()
    started = time.monotonic()
    compilers = [*pythons.pythons()]
    builder = pack.Builder(root=ROOT, run=pip.run_tool, say=say, pythons=compilers)
    try:
        files = builder.build(tags)
    except targets.UnknownTarget as unknown:
        raise BuildFailed(str(unknown), USAGE_ERROR) from None
    except (wheels.ChecksumMismatch, parts.UnsupportedWheel) as fault:
        raise BuildFailed(str(fault), IO_ERROR) from None
    for file in files:
        say(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1e6:.1f} MB, sha256 {sha256_of(file)}")
    say(f"build.py: made in {time.monotonic() - started:.0f} s")
    return 0


def demo(arguments: Sequence[str]) -> int:
    """Replace this process with the demo of this checkout."""
    CHECKOUT_VENV.ensure(CHECKOUT_VENV.runtime_lock)
    command = [str(CHECKOUT_VENV.python), "-P", "-m", "appliance", "demo", *arguments]
    os.execve(CHECKOUT_VENV.python, command, {**os.environ, "PYTHONPATH": str(ROOT)})


def test(arguments: Sequence[str]) -> int:
    """Check lint, types, and tests, up to the first failure."""
    return checks.run_checks(CHECKOUT_VENV, arguments)


def bench(arguments: Sequence[str]) -> int:
    """Run the named measurements in .venv."""
    CHECKOUT_VENV.ensure(CHECKOUT_VENV.runtime_lock, CHECKOUT_VENV.test_lock)
    return run_visible([str(CHECKOUT_VENV.python), "-m", "benchmarks", *arguments], ROOT, os.environ)


def lock(arguments: Sequence[str]) -> int:
    """Rewrite runtime.lock and test.lock from pyproject.toml."""
    return locks.write_locks(CHECKOUT_VENV, arguments)


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "pyz": pyz,
    "demo": demo,
    "test": test,
    "bench": bench,
    "lock": lock,
}


def main(argv: Sequence[str]) -> int:
    if argv and argv[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    argv = argv or ["pyz"]
    if argv[0] not in COMMANDS:
        print(USAGE, end="", file=sys.stderr)
        return USAGE_ERROR
    try:
        return COMMANDS[argv[0]](argv[1:])
    except BuildFailed as failed:
        report_failure(str(failed), lines=failed.lines)
        return failed.code
    except OSError as error:
        report_failure(str(error))
        return IO_ERROR
    except KeyboardInterrupt:
        report_failure("interrupted; run this again to finish")
        return 128 + signal.SIGINT


if __name__ == "__main__":
    end_on_sigterm()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
