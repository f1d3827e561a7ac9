"""Paths of URLs that come from outside."""

from __future__ import annotations

import re
from typing import Any

from appliance.errors import Invalid
from appliance.tables.checks import shown, string

_BAD_PATH = re.compile(r"[\0-\x20\x7f\\\\#]")


def url_path(value: Any) -> str:
    """A check: the path of a URL, with its query if it has one, that cannot name another origin."""
    text = string(value)
    if not text.startswith("/"):
        raise Invalid(f'must begin with /, as in "/status"; the address is base_url\'s, not {shown(text)}')
    if text.startswith("//") or _BAD_PATH.search(text):
        raise Invalid(f"must be a path without blanks, line breaks, \\ and #, and with one / at first: {shown(text)}")
    return text
