"""Writes the files next to the single file: its checksum, its content (SPDX), and the data that are necessary to
repeat the build."""

from __future__ import annotations

import json
import runpy
import subprocess
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from firmware import spdx
from firmware.digest import sha256_of
from firmware.parts import Parts

LOCKS = ("firmware/build.lock", "firmware/runtime.lock", "firmware/targets.toml", "shiv.toml")
"""The lock files and settings that, together with the sources, determine the bytes of the single file."""


def write_companions(
    file: Path,
    root: Path,
    parts: Parts,
    wheels: Iterable[Path],
    made_of: Mapping[str, Any],
    compilers: Sequence[str],
    options: Iterable[str],
) -> None:
    """Write `.sha256`, `.spdx.json`, and `.build.json` next to the single file.

    `made_of` is the result of `commit_of` before the build. `compilers` lists the Python versions of the bytecode.
    `options` contains the build options.
    """
    digest, version, created = sha256_of(file), *_version(root)
    file.with_name(f"{file.name}.sha256").write_text(f"{digest}  {file.name}\n")
    document = spdx.build_document(file.name, digest, version, created, parts.packages, parts.notices)
    file.with_suffix(".spdx.json").write_bytes(document)
    manifest = {
        "file": file.name,
        "sha256": digest,
        "bytes": file.stat().st_size,
        "version": version,
        "source_date": created,
        **made_of,
        "command": " ".join(["python3 build.py", *options]),
        "compilers": compilers,
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
        "locks": {name: sha256_of(root / name) for name in LOCKS},
        "wheels": {wheel.name: sha256_of(wheel) for wheel in sorted(wheels, key=lambda wheel: wheel.name)},
    }
    file.with_suffix(".build.json").write_text(json.dumps(manifest, indent=1) + "\n")


def _version(root: Path) -> tuple[str, str]:
    """Return version and build time from the file that defines them."""
    names: Mapping[str, Any] = runpy.run_path(str(root / "appliance" / "version.py"))
    return names["VERSION"], f"{names['MADE_AT']:%Y-%m-%dT%H:%M:%SZ}"


def commit_of(root: Path) -> dict[str, Any]:
    """Return the commit, and whether the tree is clean. Outside a clone, both values are None."""
    commit = _git(root, "rev-parse", "HEAD") if (root / ".git").exists() else None
    return {"commit": commit, "is_clean": None if commit is None else _git(root, "status", "--porcelain") == ""}


def _git(root: Path, *command: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *command], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
