"""Programs other than Python that a test needs."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from firmware import skips


def need(program: str) -> str:
    """Return the path of a program from `skips.PROGRAMS`. Skip the test if the program is missing."""
    assert program in skips.PROGRAMS, program
    found = skips.find_program(program)
    if found is None:
        pytest.skip(skips.needs(program))
    return found


def known_to_pyenv() -> str:
    """Return all versions of pyenv, separated by colons. Without this list, pyenv's `python3.6` does not run."""
    pyenv = shutil.which("pyenv")
    listed = subprocess.run([pyenv, "versions", "--bare"], capture_output=True, text=True).stdout if pyenv else ""
    return ":".join(listed.split())
