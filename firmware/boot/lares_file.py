"""Describes the content of the single file. The build writes the values. Any Python must be able to read this
file."""

BUILD = ""
DATE = 1500000000  # modification time of all unpacked files
GLIBC = "0"
NEEDS = ""  # the supported machines, as the end of a sentence
TARGETS = ()  # type: tuple[str, ...]
