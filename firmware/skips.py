"""Accepted reasons for skipped tests. This plugin of pytest fails a run in which a test is skipped for another
reason."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ALLOWED = {
    "root may do everything": "needs a user other than root",
    "only root ": "needs root",
    "needs root, to change into a root file system and create a user": "needs root",
    "NO CONTAINER BUILDER WORKS HERE": "podman and docker need more privileges than a machine for tests may have",
    "needs a container registry that answers": "the base image of the container comes from a registry",
    "no filesystem can be mounted here": "a container may forbid mounts even to root",
    "needs permission to mount a small and a noexec file system": "a container may forbid mounts even to root",
    "needs a network": "downloads need a network",
    "creates a root file system from Debian packages, but apt": "needs a Debian mirror that answers",
    "npm could not fetch": "downloads need a network",
    "could not import 'hatasmota": "not a dependency; needed only when you change the code for Tasmota's discovery",
    "pip could not fetch": "downloads need a network",
    "the Matter SDK needs libnl-route-3": "a Debian library for a server that is not part of the project",
    "no namespace can be made here": "a container may forbid namespaces even to root",
    "there is no python": "tests of older Python versions need these versions",
    "systemd-analyze here is too old": "the check of the unit file needs systemd 250",
    "emulates a whole box for an hour": "takes an hour; `build.py test -m box` runs it",
    "no program for arm64 can be run here": "the box's image needs qemu's user emulation, registered in the kernel",
    "compiles a CPython for musl": "compiling takes minutes; `build.py test -m musl` does it",
    "needs libseccomp": "tests the unit's filters without systemd, on machines with libseccomp",
}
"""Prefixes of accepted reasons, each with an explanation."""

PROGRAMS = {
    "apt-get",
    "bash",
    "caddy",
    "cc",
    "chromium",
    "curl",
    "debootstrap",
    "dpkg",
    "dpkg-deb",
    "e2fsck",
    "gcc",
    "make",
    "mkfs.ext4",
    "mosquitto",
    "mosquitto_passwd",
    "nginx",
    "node",
    "npm",
    "perl",
    "promtool",
    "qemu-aarch64-static",
    "qemu-img",
    "qemu-system-aarch64",
    "ssh",
    "ssh-keygen",
    "systemd-analyze",
    "unshare",
}
"""Programs that tests may need, in addition to Python and git."""

OTHER_NAMES = {"chromium": ("chromium-browser", "google-chrome", "google-chrome-stable")}
"""Maps some of the `PROGRAMS` to alternative names."""

FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/opt/homebrew/sbin")
"""Folders with programs. A user's PATH does not always contain these folders."""


def find_program(name: str) -> str | None:
    """Return the path of a program, or None if the program is not installed."""
    paths = os.pathsep.join([os.environ.get("PATH", os.defpath), *FOLDERS])
    return next(
        (path for each in (name, *OTHER_NAMES.get(name, ())) if (path := shutil.which(each, path=paths))), None
    )


def needs(name: str) -> str:
    return f"needs {name}, which is not installed"


def missing_program(reason: str) -> str | None:
    """Return the missing program from a skip reason. Return None for any other reason, or if the program is
    installed."""
    found = re.fullmatch(r"(?:Skipped: )?needs (\S+), which is not installed", reason)
    name = found[1] if found else ""
    return name if name in PROGRAMS and find_program(name) is None else None


def unlisted(skipped: Iterable[tuple[str, str]]) -> list[str]:
    """Return the tests with an unexpected skip reason, and these reasons."""
    wrong = []
    for test, skip_reason in skipped:
        reason = skip_reason.removeprefix("Skipped: ")
        if not reason.startswith(tuple(ALLOWED)) and missing_program(reason) is None:
            wrong.append(f"{test}: {reason}")
    return wrong


def summary(skipped: Iterable[tuple[str, str]]) -> str:
    """Return the number of skipped tests by program (`3 proofs need chromium, 1 mosquitto`), or an empty string."""
    count = Counter(filter(None, (missing_program(reason) for _, reason in skipped)))
    [first, *rest] = [f"{number} {name}" for name, number in count.most_common()] or [""]
    if not first:
        return ""
    number, name = first.split(" ")
    return ", ".join([f"{number} {'proof needs' if number == '1' else 'proofs need'} {name}", *rest])


SKIPPED = 6
"""The exit code after unexpected skips. pytest itself does not use this code. If pytest ends with this code, the
tests are not run again."""


def pytest_sessionfinish(session: Any) -> None:
    """If a test was skipped unexpectedly, fail the run. Only pytest's main process knows all skips."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(session.config, "workerinput") or reporter is None:
        return
    if session.exitstatus in (0, 1) and unlisted(_skipped(reporter)):
        session.exitstatus = SKIPPED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Report unexpected skips. For `checks`, store the number of passed tests and the missing programs."""
    skipped = _skipped(terminalreporter)
    if wrong := unlisted(skipped):
        terminalreporter.section("skipped for a reason that firmware/skips.py does not list")
        for line in wrong:
            terminalreporter.line(line, red=True)
    if tally := os.environ.get("BUILD_PY_TALLY"):
        passed = len(terminalreporter.stats.get("passed", ()))
        Path(tally).write_text(f"{passed}\n{summary(skipped)}")


def _skipped(reporter: Any) -> list[tuple[str, str]]:
    return [(each.nodeid, str(each.longrepr[2])) for each in reporter.stats.get("skipped", ())]
