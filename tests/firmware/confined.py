"""Run a command under the system call filters of a systemd unit: `confined.py UNIT COMMAND…`. Needs libseccomp.

Like systemd, this program applies `SystemCallFilter`, `MemoryDenyWriteExecute`, and `RestrictAddressFamilies`.
"""

from __future__ import annotations

import ctypes
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ALLOW, REFUSE = 0x7FFF0000, 0x00050001
"""Actions of the filter: allow the call, or fail with EPERM."""

MASKED_EQUAL = 7
PROT_WRITE, PROT_EXEC = 2, 4


class Comparison(ctypes.Structure):
    """`struct scmp_arg_cmp`: a comparison of a call's argument."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


def calls_of(names: str) -> Iterator[str]:
    """Yield the named system calls. If a name is an @set, yield the calls in the set."""
    for name in names.split():
        if name.startswith("@"):
            output = subprocess.check_output(["systemd-analyze", "syscall-filter", name], text=True)
            yield from calls_of(" ".join(re.findall(r"^    ([@\w-]+)$", output, re.MULTILINE)))
        else:
            yield name


def allowed_by(settings: list[tuple[str, str]]) -> set[str]:
    """Return the calls that the unit's `SystemCallFilter`s allow. The first filter of a unit lists the allowed
    calls."""
    allowed: set[str] = set()
    for name, value in settings:
        if name == "SystemCallFilter":
            is_refusal = value.startswith("~")
            change: Callable[[Iterator[str]], None] = allowed.difference_update if is_refusal else allowed.update
            change(calls_of(value.removeprefix("~")))
    return allowed


def confine(unit: Path) -> None:
    """Permanently apply the unit's filters to this process and its children."""
    settings = re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.MULTILINE)
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(REFUSE))
    allowed = allowed_by(settings)
    for name in allowed:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:
            if name in ("mmap", "mprotect") and ("MemoryDenyWriteExecute", "yes") in settings:
                mask = PROT_EXEC | PROT_WRITE if name == "mmap" else PROT_EXEC
                _allow_unless(library, context, number, mask)
            elif name == "socket":
                _allow_families(library, context, number, dict(settings)["RestrictAddressFamilies"])
            else:
                assert library.seccomp_rule_add_array(context, ALLOW, number, 0, None) == 0, name
    assert library.seccomp_load(context) == 0, "the filter was refused"


def _allow_unless(library: ctypes.CDLL, context: ctypes.c_void_p, number: int, mask: int) -> None:
    for value in {0, mask & -mask, mask & (mask - 1)} - {mask}:
        rule = Comparison(2, MASKED_EQUAL, mask, value)
        assert library.seccomp_rule_add_array(context, ALLOW, number, 1, ctypes.byref(rule)) == 0


def _allow_families(library: ctypes.CDLL, context: ctypes.c_void_p, number: int, families: str) -> None:
    for family in families.split():
        rule = Comparison(0, MASKED_EQUAL, 0xFFFFFFFF, int(getattr(socket, family)))
        assert library.seccomp_rule_add_array(context, ALLOW, number, 1, ctypes.byref(rule)) == 0


if __name__ == "__main__":
    confine(Path(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
