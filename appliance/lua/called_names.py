"""Called names: the ids that a file's calls of `ctx` name as plain texts, which can be seen without running it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from appliance.lua.source import Source
from appliance.lua.tokens import windows_of

CALLS: Mapping[str, str] = {
    "command": "device",
    "wait_for": "device",
    "command_room": "room",
    "list_room_devices": "room",
    "command_group": "group",
    "list_group_devices": "group",
    "invoke": "operation",
}
"""What the first argument of a call names. Calls that answer nil where there is no such thing are not among them."""

_ANY_CALL = re.compile(rb":\s*(?:%b)\b" % "|".join(CALLS).encode())

_PLAIN = re.compile(r"""(["'])([^"'\\]*)\1""")


@dataclass(frozen=True, slots=True)
class CalledName:
    """A call `ctx:command("desk:light:0", …)` on this line: `kind` is what the name is of."""

    line: int
    call: str
    kind: str
    name: str


def called_names(source: Source) -> Iterator[CalledName]:
    """Every call whose first argument is a text alone, in order."""
    if _ANY_CALL.search(source.text) is None:  # most files have none, and to look for words takes a while
        return
    for colon, call, bracket, name, behind in windows_of(source.chunk, 5):
        if (colon.word, bracket.word) == (":", "(") and call.word in CALLS and behind.word in (",", ")"):
            plain = _PLAIN.fullmatch(name.word) if name.kind == "text" else None
            if plain is not None:
                yield CalledName(name.line, call.word, CALLS[call.word], plain[2])
