"""The targets of the single file: Pythons, machines, and C libraries."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path


class UnknownTarget(Exception):
    """Raised if no target has the given tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One kind of machine that can run the single file. `wheels` lists the platform tags of suitable wheels, best
    first."""

    python: str
    machine: str
    libc: str
    wheels: tuple[str, ...]

    @property
    def tag(self) -> str:
        """The tag of this Python, such as `cpython-311-aarch64-linux-gnu`."""
        return f"cpython-{self.python.replace('.', '')}-{self.machine}-linux-{self.libc}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All targets, sorted by tag, and the oldest supported version of glibc."""

    targets: tuple[Target, ...]
    oldest_glibc: str

    def choose(self, tags: Sequence[str]) -> tuple[Target, ...]:
        """Return the targets with these tags. If no tags are given, return all targets. Raise `UnknownTarget` if a
        tag is unknown."""
        known = {target.tag: target for target in self.targets}
        for tag in tags:
            if tag not in known:
                raise UnknownTarget(f"unknown target {tag!r}; see firmware/targets.toml")
        return tuple(known[tag] for tag in tags) or self.targets


def describe(targets: Collection[Target], oldest_glibc: str) -> str:
    """Return the supported machines as the end of a sentence."""
    libraries = {"gnu": f"glibc {oldest_glibc} or newer", "musl": "musl"}
    pythons = sorted({target.python for target in targets}, key=lambda python: int(python.partition(".")[2]))
    machines = sorted({target.machine for target in targets})
    used = [libraries[libc] for libc in sorted({target.libc for target in targets})]
    return f"CPython {_either(pythons)} on 64-bit Linux, {_either(machines)}, with {_either(used)}"


def _either(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def read_targets(file: Path) -> Table:
    toml = tomllib.loads(file.read_text())
    targets = [
        Target(
            python=python,
            machine=machine,
            libc=libc,
            wheels=tuple(f"{wheel}_{machine}" for wheel in toml[libc]["wheels"]),
        )
        for python in toml["pythons"]
        for machine in toml["machines"]
        for libc in ("gnu", "musl")
    ]
    return Table(targets=tuple(targets), oldest_glibc=toml["gnu"]["oldest"])
