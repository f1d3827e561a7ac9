"""Checks the settings for requests to a vendor: intervals, secrets, certificates, headers, and paths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from appliance.errors import Invalid
from appliance.tables.checks import format_value, matching, string, whole

_BAD_PATH = re.compile(r"[\0-\x20\x7f\\\\#]|\A[^?]*/(\.|%2[eE]){1,2}(/|\?|\Z)")

EXCLUSIVE = (("token", "token_file"), ("password", "password_file"), ("ca_file", "fingerprint"))
"""Pairs of keys that a section cannot combine."""

MIN_POLL_SECS, MAX_POLL_SECS, DEFAULT_POLL_SECS = 1, 86_400, 5

poll_interval_secs = whole(MIN_POLL_SECS, MAX_POLL_SECS)
max_silence_secs = whole(1, 30 * 86_400)

file_path = matching(r"[^\0]+", "the path of a file")
"""Checks a file path. The file may be missing."""

fingerprint = matching(r"(?:[0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}", "the SHA-256 of a certificate in hexadecimal")


def secret(value: Any) -> str:
    """Check that a secret is one line of text. The error message never contains the secret."""
    if not isinstance(value, str) or re.fullmatch(r"[^\0-\x1f\x7f]+", value) is None:
        raise Invalid("must be a non-empty string without line breaks or other control characters")
    return value


def headers(value: Any) -> Mapping[str, str]:
    """Check a table of HTTP headers."""
    if not isinstance(value, Mapping):
        raise Invalid('must be a table like { Priority = "high" }')
    for name, text in value.items():
        check_header(name, text)
    return value


def check_header(name: str, text: Any) -> None:
    """Raise `Invalid` for an invalid name, or for a value that is not one line of text."""
    if re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}", name) is None:
        raise Invalid(f"contains {format_value(name)}, which is not a valid header name")
    if not isinstance(text, str) or re.search(r"[\0-\x1f\x7f]", text):
        raise Invalid(f"must set the header {name} to a string of one line")


def url_path(value: Any) -> str:
    """Check the path of a URL, with an optional query. The path cannot lead to another origin."""
    text = string(value)
    if not text.startswith("/"):
        raise Invalid(f'must begin with /, like "/status", not {format_value(text)}; the address belongs in base_url')
    if text.startswith("//") or _BAD_PATH.search(text):
        raise Invalid(
            "must be a path that begins with a single / and contains no spaces, line breaks, `\\`, `#`, or `..`; "
            f"it is {format_value(text)}"
        )
    return text
