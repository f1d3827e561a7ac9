"""Checks of what sections say about reaching a vendor: secrets, certificates, headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from appliance.errors import Invalid
from appliance.tables.checks import matching

file_path = matching(r"[^\0]+", "the path of a file")
"""A check: a path, which is not looked up."""

fingerprint = matching(r"(?:[0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}", "the SHA-256 of a certificate in hexadecimal")
"""A check: the fingerprint of a certificate."""


def secret(value: Any) -> str:
    """A check whose message never shows the value: a line of text."""
    if not isinstance(value, str) or re.fullmatch(r"[^\0-\x1f\x7f]+", value) is None:
        raise Invalid("must be a string that is not empty, of one line")
    return value


def headers(value: Any) -> Mapping[str, str]:
    """A check: headers of a request, as a table of lines of text."""
    if not isinstance(value, Mapping):
        raise Invalid('must be a table like { Priority = "high" }')
    for name, text in value.items():
        if re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) is None:
            raise Invalid(f"holds {name!r}, which is no name of a header")
        if not isinstance(text, str) or re.search(r"[\0-\x1f\x7f]", text):
            raise Invalid(f"must state the header {name} as a string of one line")
    return value
