"""The methods of `ctx` for completions in editors."""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from appliance.config import bundled_config

_METHOD = re.compile(r"((?:---.*\n)+)function Context:(\w+)\(")
_PARAMETER = re.compile(r"@param (\w+\??)")


class CtxCompletion(Struct, frozen=True, kw_only=True):
    """A method of `ctx`. The name of an optional argument ends in `?`."""

    name: str
    arguments: list[str]
    description: str


@cache
def list_methods() -> list[CtxCompletion]:
    """Return the methods of `ctx` from `config/library/lares.lua`, sorted by name."""
    text = (bundled_config() / "library" / "lares.lua").read_text("utf-8")
    found = {match[2]: match[1] for match in _METHOD.finditer(text)}
    return [
        CtxCompletion(name=name, arguments=_PARAMETER.findall(found[name]), description=_description_of(found[name]))
        for name in sorted(found)
    ]


def _description_of(comment: str) -> str:
    """Return the sentences before the first annotation or example."""
    lines = []
    for line in comment.splitlines():
        text = line.removeprefix("---").strip()
        if text.startswith(("@", "```")):
            break
        lines.append(text)
    return " ".join(lines)
