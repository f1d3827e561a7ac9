"""Runs pip and the tools of the build, and adds advice to their error messages."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from firmware.console import UNAVAILABLE, BuildFailed, run_captured

ENTRY = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)", re.MULTILINE)

ADVICE = (
    ("No space left", "the disk is full; delete some files and run this again"),
    (
        "Retrying|Connection|timed out|Temporary failure|SSLError|ProxyError|certificate",
        "the package index cannot be reached; check the network and proxy settings, then run this again",
    ),
    (
        "No matching distribution|Could not find a version|not a supported wheel",
        "a package has no wheel for Python {version} on this machine; "
        "run this with Python 3.11 to 3.14 on a 64-bit system",
    ),
    (
        "DO NOT MATCH THE HASHES",
        "a file differs from the lock's hash, so it was not installed; "
        "run this again with Python 3.11 to 3.14, without a proxy or mirror that changes files",
    ),
    ("", "pip failed; read the message above, then run this again"),
)
"""Maps a pattern of a pip message to advice for the user."""


def pip_command(python: Path | str, command: str, lock: Path) -> list[str]:
    """Return the pip command that installs exactly the files of a lock, without building packages."""
    flags = "--no-deps --require-hashes --only-binary=:all: --no-input --progress-bar=off --disable-pip-version-check"
    return [str(python), "-I", "-m", "pip", command, *flags.split(), "-r", str(lock)]


Run = Callable[..., None]
"""A function like `run_tool`."""


def run_tool(command: Sequence[str], *, env: Mapping[str, str] = os.environ, **options: Any) -> None:
    """Run a tool with the options of `run_captured`. If the tool fails, raise `BuildFailed` with advice and the last
    lines of the tool's output."""
    code, lines = run_captured(command, env={**env, "PIP_USER": "0"}, **options)
    if code:
        raise BuildFailed(advice(lines), UNAVAILABLE, lines=readable(lines))


def python_version() -> str:
    return ".".join(str(part) for part in sys.version_info[:3])


def advice(lines: Sequence[str]) -> str:
    text = "\n".join(lines)
    return next(sentence for pattern, sentence in ADVICE if re.search(pattern, text)).format(version=python_version())


def readable(lines: Sequence[str]) -> list[str]:
    """Return the last useful lines of pip's output, without the hosts and folders that pip's options contain."""
    progress = r"(Collecting|Processing|Requirement already|  Downloading|  Using) "
    noise = re.compile(rf"\s*$|Looking in |WARNING: (Location|Url) |\[notice|{progress}")
    secret = re.compile(r"\w+://\S+|(?<=host=)'[^']*'|(?<=Retrying) \(Retry\([^)]*\)\)")
    return [secret.sub("(...)", line) for line in lines if not noise.match(line)][-8:]
