"""`python -m benchmarks [NAME…]`: run the measures, each in a process of its own, and print or write the table."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import threading
import time

import benchmarks
from benchmarks import _report
from benchmarks._frame import Outcome, Result, Sample, Skipped, find_worse

ROUNDS = 5
MAX_SECS = 300.0
USAGE_ERROR, WORSE = 64, 1


def main() -> int:
    """Run what the arguments name; 64 for a name that does not exist, 1 where a measure failed or is worse."""
    names = sorted(each.name for each in pkgutil.iter_modules(benchmarks.__path__) if not each.name.startswith("_"))
    parsed = _parser(names).parse_args()
    if unknown := sorted(set(parsed.names) - set(names)):
        print(f"there is no measure {', '.join(unknown)}; there are {', '.join(names)}", file=sys.stderr)
        return USAGE_ERROR
    if parsed.alone:
        return _measure_here(parsed.names[0], parsed.rounds)
    last, outcomes, failed = _report.read_last(), [], []
    for name in parsed.names or names:
        outcome = _measure_apart(name, parsed.rounds)
        if outcome is None:
            failed.append(f"{name}: it failed")
        else:
            outcomes.append(outcome)
    worse = find_worse(outcomes, last) if parsed.check else []
    if parsed.write or not (parsed.names or parsed.check):
        _report.write(outcomes, kept=last if parsed.names else [])
    for sentence in (*failed, *worse):
        print(sentence, file=sys.stderr)
    return WORSE if failed or worse else os.EX_OK


def _parser(names: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="build.py bench",
        description="Measure the hub beside its limits; without names everything, and write benchmarks/RESULTS.md.",
        epilog="measures: " + ", ".join(names),
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these measures, and write no table")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"rounds of each measure ({ROUNDS})")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail where a ratio is worse than in the last table"
    )
    parser.add_argument("--write", action="store_true", help="write what was measured into the last table")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    return parser


def _measure_apart(name: str, rounds: int) -> Outcome | None:
    """Run a measure in a process of its own and print its rows; None where it failed."""
    module = importlib.import_module(f"benchmarks.{name}")
    title = (module.__doc__ or "").splitlines()[0]
    print(f"\n{name}: {title}", flush=True)
    began, results, skipped = time.perf_counter(), dict[str, Result](), ""
    command = [sys.executable, "-m", "benchmarks", "--alone", name, "--rounds", str(rounds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        limit = threading.Timer(MAX_SECS, process.terminate)
        limit.start()
        for line in process.stdout or ():
            reported = json.loads(line)
            if "skipped" in reported:
                skipped = reported["skipped"]
                continue
            sample = Sample.of_json(reported)
            results.setdefault(sample.row.label, Result(row=sample.row)).add(sample)
        limit.cancel()
    seconds = time.perf_counter() - began
    outcome = Outcome(name=name, title=title, seconds=seconds, results=[*results.values()], skipped=skipped)
    print(*_report.lines_of(outcome), sep="\n", flush=True)
    return None if process.returncode else outcome


def _measure_here(name: str, rounds: int) -> int:
    """Run a measure in this process and print its samples, a JSON object a line."""
    module = importlib.import_module(f"benchmarks.{name}")
    try:
        for sample in module.measure(rounds):
            print(json.dumps(sample.to_json()), flush=True)
    except Skipped as reason:
        print(json.dumps({"skipped": str(reason)}), flush=True)
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
