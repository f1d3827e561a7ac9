"""Describes the content of the single file. The build writes the values. Any Python must be able to read this
file."""

BUILD = ""
GLIBC = "0"
TARGETS = ()  # type: tuple[str, ...]
