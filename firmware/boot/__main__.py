"""Starts lares.pyz, or reports that the machine is unsupported. Any Python must be able to read this file."""

import os
import sys

from lares_file import GLIBC, NEEDS, TARGETS

try:
    from importlib.machinery import EXTENSION_SUFFIXES
except ImportError:  # a very old Python
    EXTENSION_SUFFIXES = [""]

TAG = EXTENSION_SUFFIXES[0][1:].replace(".so", "")
"""This Python's tag of compiled modules; empty for a very old Python."""


def glibc():  # type: () -> tuple[int, ...]
    """Return the version of glibc, or an empty tuple for another C library."""
    try:
        version = (os.confstr("CS_GNU_LIBC_VERSION") or "").replace("glibc ", "")
    except (AttributeError, OSError, ValueError):
        return ()
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def is_supported():  # type: () -> bool
    return sys.version_info >= (3, 11) and TAG in TARGETS and (not glibc() or glibc() >= GLIBC)


def describe_box():  # type: () -> str
    tag = " (%s)" % TAG if TAG else ""
    library = " with glibc " + ".".join(map(str, glibc())) if glibc() else ""
    return "%s is Python %s%s%s" % (sys.executable or "this", "%d.%d.%d" % tuple(sys.version_info[:3]), tag, library)


def open_standard_streams():  # type: () -> None
    """Connect closed standard streams to /dev/null. If a standard stream remained closed, the next file to be opened
    would get the stream's descriptor."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))


if __name__ == "__main__":
    open_standard_streams()
    if not is_supported():
        sys.stderr.write("lares: this file needs %s; %s\n" % (NEEDS, describe_box()))
        sys.exit(os.EX_UNAVAILABLE)
    from lares_launcher import launch

    sys.exit(launch())
