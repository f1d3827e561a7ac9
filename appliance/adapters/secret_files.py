"""Reads secrets and certificates of a section from files, and removes secrets from texts."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from appliance.errors import AdapterFailed
from appliance.tables.plain_files import MAX_SECRET_BYTES, read_plain

MAX_CERTIFICATE_BYTES = 1 << 20

MAX_ANSWER_CHARS = 200
"""Length limit of a server's text in an error."""


MIN_WORD_CHARS, _SCHEMES = 6, frozenset({"bearer", "digest"})


def read_secret(key: str, path: Path) -> str:
    """Read the first line of the file that a section names by `key`. Raise `AdapterFailed` if the file cannot be
    read."""
    try:
        text = read_plain(path, MAX_SECRET_BYTES).decode().partition("\n")[0].strip()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise AdapterFailed(f"{key}: cannot read {path}: {reason}") from None
    if not text:
        raise AdapterFailed(f"{key}: the first line of {path} is empty")
    return text


def secret_of(key: str, stated: str | None, root: Path, file: str | None) -> str | None:
    """Return the secret of a section: as stated, or from the file that `<key>_file` names. Raise `AdapterFailed` if
    the file cannot be read."""
    return stated if file is None else read_secret(f"{key}_file", root / file)


def secret_words(texts: Iterable[str]) -> list[str]:
    """Return the words of headers that can be secrets: neither short nor the name of a scheme."""
    words = [word for text in texts for word in text.split()]
    return [word for word in words if len(word) >= MIN_WORD_CHARS and word.lower() not in _SCHEMES]


def open_tls(ca_file: Path | None = None) -> ssl.SSLContext:
    """Return a TLS context that trusts the authorities of the system, or those in `ca_file`. Raise `AdapterFailed` if
    the file cannot be read."""
    try:
        # Not `cafile`: OpenSSL would wait for the other end of a named pipe.
        found = None if ca_file is None else read_plain(ca_file, MAX_CERTIFICATE_BYTES).decode("ascii", "replace")
        context = ssl.create_default_context(cadata=found)
        if found is not None and not context.cert_store_stats()["x509"]:
            raise ssl.SSLError
        return context
    except OSError as error:
        raise AdapterFailed(f"ca_file: {ca_file} contains no certificates: {_reason(error)}") from None


def redact(text: str, secrets: Iterable[str]) -> str:
    """Replace secrets by `***`, including their forms in URLs and in JSON."""
    for secret in secrets:
        for form in dict.fromkeys((secret, quote(secret, safe=""), quote(secret), json.dumps(secret)[1:-1])):
            text = text.replace(form, "***")
    return text


def one_line(text: str, max_chars: int = MAX_ANSWER_CHARS) -> str:
    """Return a server's text as one line without control characters, shortened."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return "not in PEM format"
    return (error.strerror or type(error).__name__).lower()
