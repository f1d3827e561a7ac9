"""Describes the content of the single file. The build writes it. Any Python must be able to read it."""

BUILD = ""
DATE = 1500000000  # modification time of all unpacked files
GLIBC = ()  # type: tuple[int, ...]
NEEDS = ""  # the supported machines, as the end of a sentence
TARGETS = ()  # type: tuple[str, ...]
