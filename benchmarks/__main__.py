"""`python3 build.py bench [NAME ...]`: runs each measure in a separate process, and writes RESULTS.md."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import subprocess
import sys
import threading

import msgspec

import benchmarks
from benchmarks._frame import Sample, Skipped, gather, write

MAX_SECS = 5400.0
USAGE_ERROR, FAILED = 64, 1


def main() -> int:
    """Run the named measures. Return 64 for an unknown name, and 1 if a measure failed."""
    names = sorted(each.name for each in pkgutil.iter_modules(benchmarks.__path__) if not each.name.startswith("_"))
    parser = argparse.ArgumentParser(
        prog="build.py bench",
        description="Measure the hub and compare it with its targets. "
        "If no names are given, run all measures and write RESULTS.md.",
        epilog="measures: " + ", ".join(names),
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="run only these measures, and write no table")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds of each measure (5)")
    parser.add_argument("--write", action="store_true", help="write the results into the tables")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if unknown := sorted(set(parsed.names) - set(names)):
        print(f"unknown measure {', '.join(unknown)}; use one of {', '.join(names)}", file=sys.stderr)
        return USAGE_ERROR
    if parsed.alone:
        return _measure_here(parsed.names[0], parsed.rounds)
    is_written = parsed.write or not parsed.names
    codes = [_measure_apart(name, parsed.rounds, is_written=is_written) for name in parsed.names or names]
    return FAILED if any(codes) else os.EX_OK


def _measure_apart(name: str, rounds: int, *, is_written: bool) -> int:
    """Run a measure in a separate process, and print its rows. Return the exit code of the process."""
    description = (importlib.import_module(f"benchmarks.{name}").__doc__ or "").partition("\n\n")[0]
    print(f"\n{name}: {description}", flush=True)
    command = [sys.executable, "-m", "benchmarks", "--alone", name, "--rounds", str(rounds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        limit = threading.Timer(MAX_SECS, process.terminate)
        limit.start()
        reported = [msgspec.json.decode(line, type=Sample | str) for line in process.stdout or ()]
        limit.cancel()
    results = gather([each for each in reported if not isinstance(each, str)])
    for reason in (each for each in reported if isinstance(each, str)):
        print(f"not measured: {reason}")
    for each in results:
        print("  ", *filter(None, each.cells()), sep="  ", flush=True)
    if is_written and not process.returncode:
        write(name, results)
    return process.returncode


def _measure_here(name: str, rounds: int) -> int:
    """Run a measure in this process, and print its samples, one per line.

    If samples are missing, a line of text gives the reason.
    """
    try:
        for sample in importlib.import_module(f"benchmarks.{name}").measure(rounds):
            print(msgspec.json.encode(str(sample) if isinstance(sample, Skipped) else sample).decode(), flush=True)
    except Skipped as reason:
        print(msgspec.json.encode(str(reason)).decode(), flush=True)
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
