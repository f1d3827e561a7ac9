"""Describes the content of the single file. The build writes the values. Any Python must be able to read this
file."""

BUILD = ""
DATE = 0
GLIBC = "0"
TARGETS = ()  # type: tuple[str, ...]
