"""`python -m benchmarks [NAME…]`: run every benchmark, or those that are named, and print their figures."""

from __future__ import annotations

import importlib
import pkgutil
import platform
import sys
from pathlib import Path

import benchmarks


def main() -> int:
    """Run and print; the exit code is 64 for a name that does not exist."""
    names = sorted(each.name for each in pkgutil.iter_modules(benchmarks.__path__) if not each.name.startswith("_"))
    asked = sys.argv[1:] or names
    if unknown := sorted(set(asked) - set(names)):
        print(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(names)}", file=sys.stderr)
        return 64
    print(f"Python {platform.python_version()}, {platform.machine()}, {_cores()} cores")
    for name in asked:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n{name}: {(module.__doc__ or '').splitlines()[0]}")
        for label, figure in module.measure():
            print(f"  {label:<72} {figure}")
    return 0


def _cores() -> int:
    return sum(line.startswith("processor") for line in Path("/proc/cpuinfo").read_text().splitlines())


sys.exit(main())
