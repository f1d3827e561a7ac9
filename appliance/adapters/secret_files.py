"""Reads secrets of a section from files."""

from __future__ import annotations

from pathlib import Path

from appliance.errors import AdapterFailed
from appliance.tables.plain_files import MAX_SECRET_BYTES, read_plain


def read_secret(key: str, path: Path) -> str:
    """Read the first line of the file in the setting `key`. Raise `AdapterFailed` if the file cannot be read."""
    try:
        text = read_plain(path, MAX_SECRET_BYTES).decode().partition("\n")[0].strip()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise AdapterFailed(f"{key}: cannot read {path}: {reason}") from None
    if not text:
        raise AdapterFailed(f"{key}: the first line of {path} is empty")
    return text


def secret_of(key: str, stated: str | None, root: Path, file: str | None) -> str | None:
    """Return the secret of a section: `stated`, or the content of `file` (the setting `<key>_file`). Raise
    `AdapterFailed` if the file cannot be read."""
    return stated if file is None else read_secret(f"{key}_file", root / file)
