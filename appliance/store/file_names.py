"""What the store's files are called, and the version of what is in them."""

from __future__ import annotations

import re
from collections.abc import Iterable

STORE_FORMAT = 1
"""The version of both files' format. A newer one is refused, an older one migrated."""

LOCK = "lock"
PART = ".part"
"""The ending of a file that is still being written."""

_NAME = re.compile(r"(?:snapshot|journal)\.(\d{6,})\.json")
_HALF = re.compile(r"(?:snapshot|journal)\.\d{6,}\.json.*" + re.escape(PART))


def snapshot(generation: int) -> str:
    """The name of a generation's snapshot."""
    return f"snapshot.{generation:06d}.json"


def journal(generation: int) -> str:
    """The name of a generation's journal."""
    return f"journal.{generation:06d}.json"


def generations(names: Iterable[str]) -> list[int]:
    """The generations of which there is a file, newest first."""
    found = {int(match[1]) for name in names if (match := _NAME.fullmatch(name)) is not None}
    return sorted(found, reverse=True)


def leftovers(names: Iterable[str], oldest: int) -> list[str]:
    """The files that nothing needs any more: half-written ones, and generations before the oldest to keep."""
    names = list(names)
    old = [each for each in generations(names) if each < oldest]
    finished = [name for each in old for name in (snapshot(each), journal(each))]
    return [name for name in names if _HALF.fullmatch(name) is not None or name in finished]
