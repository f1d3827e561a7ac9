"""Which proofs may be skipped where all are asked for (`build.py test --slow`), and why."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

ALLOWED = {
    "nothing is forbidden to root": "what only another user meets; it runs where the tests do not run as root",
    "only root ": "what only root can do; it runs where the tests run as root",
    "changes into a root file system, and makes a user there, which only root may": "the same",
    "NO CONTAINER BUILDER WORKS HERE": "podman and docker need more privileges than a machine for tests may have",
    "no filesystem can be mounted here": "a container may forbid it even to root",
    "mounts a small and a noexec file system of its own, and may not": "the same",
    "needs a network": "what is fetched cannot be without one",
    "makes a root file system of Debian packages, and apt": "the same: no mirror is known, or none answers",
    "npm could not fetch": "the same",
    "there is no python": "old Pythons, each tried where it happens to be installed",
    "there is no busybox here": "one shell of four, each tried where it is installed",
    "systemd-analyze here is too old": "the check of the unit file needs systemd 250",
    "compiles a CPython for musl": "minutes of compiling; `build.py test -m musl` asks for it",
    "this machine has no IPv6 loopback": "a container may lack it",
}
"""Beginnings of reasons, and why they are good ones."""

NOT_INSTALLED = "BUILD_PY_NOT_INSTALLED"
"""Names the programs, with blanks between, that could not be installed here, as whoever starts the tests knows."""


def unlisted(skipped: Iterable[tuple[str, str]]) -> list[str]:
    """The tests, with their reasons, whose reason is not listed and names no program that could not be installed."""
    missing = os.environ.get(NOT_INSTALLED, "").split()
    wrong = []
    for test, reason in skipped:
        said = reason.removeprefix("Skipped: ")
        is_missing = any(re.search(rf"\b{re.escape(name)}\b", said, re.IGNORECASE) for name in missing)
        if not is_missing and not said.startswith(tuple(ALLOWED)):
            wrong.append(f"{test}: {said}")
    return wrong
