"""Memory: no limit of memory, however small, takes the process along, and none is passed by much."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

BEYOND_MIB = 10.0


def hold(seed: int, count: int, within: float) -> None:
    """Run so many hostile scripts under random limits in a process of their own."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.lua.memory", str(seed), str(count)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=within, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    figures = re.match(r"killed \d+, trivial (\d+), beyond the limit (-?[\d.]+) MiB", ended.stdout)
    assert figures is not None, ended.stdout
    assert int(figures[1]) == count
    assert float(figures[2]) < BEYOND_MIB


def test_scripts_end_under_random_limits_of_memory() -> None:
    hold(seed=1, count=8, within=120)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 5))
def test_many_scripts_end_under_random_limits_of_memory(seed: int) -> None:
    hold(seed=seed, count=150, within=600)
