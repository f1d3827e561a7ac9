"""The TLS contexts of adapters."""

from __future__ import annotations

import ssl
from pathlib import Path

from appliance.errors import AdapterFailed
from appliance.tables.plain_files import read_plain

MAX_CERTIFICATE_BYTES = 1 << 20


def open_tls(ca_file: Path | None) -> ssl.SSLContext:
    """Return a TLS context that trusts the system's authorities, or those in `ca_file`. Raise `AdapterFailed` if
    the file cannot be read."""
    try:
        # Do not use `cafile`, because OpenSSL would wait for the other end of a named pipe.
        found = None if ca_file is None else read_plain(ca_file, MAX_CERTIFICATE_BYTES).decode("ascii", "replace")
        context = ssl.create_default_context(cadata=found)
        if found is not None and not context.cert_store_stats()["x509"]:
            raise ssl.SSLError
        return context
    except OSError as error:
        raise AdapterFailed(f"ca_file: {ca_file} contains no certificates: {_reason(error)}") from None


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return "not in PEM format"
    return (error.strerror or type(error).__name__).lower()
