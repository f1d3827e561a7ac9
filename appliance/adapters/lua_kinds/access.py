"""The credentials of a section, and the secrets in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from appliance.adapters.device_http.access import HttpAccess
from appliance.adapters.lua_kinds.section import SectionSettings
from appliance.adapters.redaction import secret_words
from appliance.adapters.secret_files import secret_of

NOT_FOR_LUA = frozenset({"type", "enabled", "password_file", "token_file", "ca_file", "fingerprint", "headers"})
"""Section keys that `ctx.settings` does not contain."""


class SectionAccess(NamedTuple):
    """The credentials for `base_url`, all secrets of the section, and `ctx.settings`: the section's values, and the
    contents of its secret files."""

    http: HttpAccess
    secrets: tuple[str, ...]
    for_lua: Mapping[str, Any]


def read_access(settings: SectionSettings, root: Path) -> SectionAccess:
    """Return the access of a section. Relative paths of its files start at `root`. Raise `AdapterFailed` if a file is
    unreadable."""
    values = settings.values
    token, password = (secret_of(name, values[name], root, values[f"{name}_file"]) for name in ("token", "password"))
    auth = values["auth"] or ("bearer" if token else "basic" if password else "none")
    is_named = auth in ("basic", "digest")
    http = HttpAccess(
        headers=values["headers"] or {},
        username=(values["username"] or "admin") if is_named else None,
        password=password if is_named else None,
        is_digest=auth == "digest",
        token=token if auth == "bearer" else None,
        ca_file=None if values["ca_file"] is None else root / values["ca_file"],
        fingerprint=values["fingerprint"],
    )
    words = secret_words(http.headers.values())
    given = {**values, "password": password, "token": token}
    for_lua = {name: value for name, value in given.items() if name not in NOT_FOR_LUA and value is not None}
    secrets = {*settings.secrets, *words, *(each for each in (token, password) if each)}
    return SectionAccess(http, tuple(secrets), for_lua)
