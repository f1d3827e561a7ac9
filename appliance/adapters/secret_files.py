"""Reads secrets of a section from files."""

from __future__ import annotations

from pathlib import Path

from appliance.errors import AdapterFailed
from appliance.tables.plain_files import MAX_SECRET_BYTES, read_plain


def secret_of(key: str, stated: str | None, root: Path, file: str | None) -> str | None:
    """Return the secret of a section: `stated`, or the first line of `file` (the setting `<key>_file`). Raise
    `AdapterFailed` if the file cannot be read."""
    if file is None:
        return stated
    path = root / file
    try:
        text = read_plain(path, MAX_SECRET_BYTES).decode().partition("\n")[0].strip()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise AdapterFailed(f"{key}_file: cannot read {path}: {reason}") from None
    if not text:
        raise AdapterFailed(f"{key}_file: the first line of {path} is empty")
    return text
