"""Determines the secret keys of the configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from appliance.adapters.kinds import KINDS
from appliance.adapters.lua_kinds.settings import KNOWN_SETTINGS
from appliance.files.toml_secrets import ANY_SECTION, IsSecret
from appliance.settings import SECTIONS
from appliance.tables.fields import Fields, Path
from appliance.tables.secret_names import is_secret_name
from appliance.tables.toml_lines import scan_lines


def _secrets_of(fields: Fields) -> frozenset[str]:
    return frozenset(key for key, field in fields.items() if field.secret)


_SECRETS = frozenset[str]().union(
    *map(_secrets_of, (KNOWN_SETTINGS, *SECTIONS.values(), *(kind.settings.FIELDS for kind in KINDS.values())))
)
"""The names of all secret settings of Lares."""


def secret_tester(of_kinds: Mapping[str, frozenset[str]], *texts: bytes) -> IsSecret:
    """Return a function that tests whether the path of a key is secret.

    `of_kinds` contains the secret settings of Lua kinds by section. `texts` are texts of the configuration, which
    contain the kinds of the sections.
    """
    kinds = {name: kind for text in texts for name, kind in _kinds_stated(text.decode(errors="replace"))}
    every = _SECRETS.union(*of_kinds.values())

    def is_secret(path: Path) -> bool:
        if path[0] == ANY_SECTION:
            return path[1] in every or is_secret_name(str(path[1]))
        if path[0] != "adapters":
            known, keys = _secrets_of(SECTIONS.get(str(path[0]), {})), path[1:]
        else:
            section, keys = str(path[1]) if len(path) > 1 else "", path[2:]
            kind = KINDS.get(kinds.get(section, section))
            fields = KNOWN_SETTINGS if kind is None else kind.settings.FIELDS
            known = _secrets_of(fields) | of_kinds.get(section, frozenset())
        return any(each in known or is_secret_name(str(each)) for each in keys)

    return is_secret


def _kinds_stated(text: str) -> Iterator[tuple[str, str]]:
    for line in scan_lines(text):
        match line.path:
            case ("adapters", str(section), "type") if stated := re.match(r"[\"'](\w+)", line.value or ""):
                yield section, stated[1]
