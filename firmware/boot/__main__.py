"""Starts lares.pyz, or reports that the machine is unsupported. Any Python must be able to read this file."""

import os
import sys

from lares_file import GLIBC, TARGETS

EX_UNAVAILABLE = 69


def tag():  # type: () -> str
    """Return this Python's tag for compiled modules, or an empty string if the Python is too old to have one."""
    try:
        from importlib.machinery import EXTENSION_SUFFIXES
    except ImportError:
        return ""
    first = EXTENSION_SUFFIXES[0]
    return first[1:-3] if first.endswith(".so") else first


def glibc():  # type: () -> str
    """Return the version of glibc, or an empty string for another C library."""
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").replace("glibc ", "")
    except (AttributeError, OSError, ValueError):
        return ""


def numbers(version):  # type: (str) -> list[int]
    return [int(part) for part in version.split(".")[:2] if part.isdigit()]


def listed(words):  # type: (list[str]) -> str
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def describe_requirements():  # type: () -> str
    parts = [target.split("-") for target in TARGETS]
    pythons = sorted(set([int(part[1][1:]) for part in parts]))
    machines = sorted(set([part[2] for part in parts]))
    libraries = sorted(set([part[4] for part in parts]))
    names = {"gnu": "glibc %s or newer" % GLIBC, "musl": "musl"}
    return "CPython %s on 64-bit Linux, %s, with %s" % (
        listed(["3.%d" % minor for minor in pythons]),
        listed(machines),
        listed([names[library] for library in libraries]),
    )


def describe_box():  # type: () -> str
    library = glibc()
    return "%s is Python %s%s%s" % (
        sys.executable or "this",
        "%d.%d.%d" % tuple(sys.version_info[:3]),
        " (%s)" % tag() if tag() else "",
        " with glibc %s" % library if library else "",
    )


def is_supported():  # type: () -> bool
    library = glibc()
    return sys.version_info >= (3, 11) and tag() in TARGETS and (not library or numbers(library) >= numbers(GLIBC))


def open_standard_streams():  # type: () -> None
    """Connect closed standard streams to /dev/null. Without this, the next file to be opened would get the
    descriptor of a standard stream."""
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
        sys.stderr.write("lares: this file needs %s; %s\n" % (describe_requirements(), describe_box()))
        sys.exit(EX_UNAVAILABLE)
    from lares_launcher import launch

    sys.exit(launch())
