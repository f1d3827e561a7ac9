"""The TLS contexts of adapters."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from weakref import WeakValueDictionary

from appliance.computing import compute_alone
from appliance.errors import AdapterFailed
from appliance.tables.plain_files import read_plain

MAX_CERTIFICATE_BYTES = 1 << 20

_shared: WeakValueDictionary[str | None, ssl.SSLContext] = WeakValueDictionary()
"""The contexts in use by the text of their certificates. The key None means the system's certificates."""


async def share_tls(ca_file: Path | None) -> ssl.SSLContext:
    """Return the same context as `open_tls`, but one context for all concurrent uses of the same certificates.

    The system's certificates take 20 ms and 1 MB. They are loaded on a thread, and freed after the last use.
    """
    return await compute_alone("tls", _open, ca_file, _share)


def open_tls(ca_file: Path | None) -> ssl.SSLContext:
    """Return a TLS context that trusts the system's authorities, or those in `ca_file`. Raise `AdapterFailed` if
    the file cannot be read."""
    return _open(ca_file, _build)


def _open(ca_file: Path | None, build: Callable[[str | None], ssl.SSLContext]) -> ssl.SSLContext:
    try:
        # Do not use `cafile`, because OpenSSL would wait for the other end of a named pipe.
        found = None if ca_file is None else read_plain(ca_file, MAX_CERTIFICATE_BYTES).decode("ascii", "replace")
        return build(found)
    except OSError as error:
        raise AdapterFailed(f"ca_file: {ca_file} contains no certificates: {_reason(error)}") from None


def _share(certificates: str | None) -> ssl.SSLContext:
    if (context := _shared.get(certificates)) is None:
        context = _shared[certificates] = _build(certificates)
    return context


def _build(certificates: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=certificates)
    if certificates is not None and not context.cert_store_stats()["x509"]:
        raise ssl.SSLError
    return context


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return "not in PEM format"
    return (error.strerror or type(error).__name__).lower()
