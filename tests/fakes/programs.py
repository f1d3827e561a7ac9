"""Programs that a test needs beside Python."""

from __future__ import annotations

import pytest

from firmware import skips


def need(program: str) -> str:
    """Where a program is that `skips.PROGRAMS` lists; skips the test where this machine lacks it."""
    assert program in skips.PROGRAMS, program
    found = skips.find_program(program)
    if found is None:
        pytest.skip(skips.needs(program))
    return found
