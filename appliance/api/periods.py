"""Periods: the query of every history, `start`, `end` and `limit`."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from appliance.api.validation import RequestFields, whole_number
from appliance.errors import Invalid
from appliance.history.period import DEFAULT_LIMIT
from appliance.tables.checks import shown
from appliance.tables.fields import Field
from appliance.tables.json_schema import INSTANT, Check, Schema

MAX_LIMIT = 1000
"""Entries that one response holds at most."""

_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+ -]\d\d:\d\d)", re.ASCII)


def _instant(value: Any) -> datetime:
    """The moment; where a `+` was not percent-encoded, it has arrived as a blank."""
    try:
        if _INSTANT.fullmatch(value) is None:
            raise ValueError
        return datetime.fromisoformat(f"{value[:10]}T{value[11:].replace(' ', '+')}".upper())
    except ValueError:
        raise Invalid(f"must be a time like 2026-11-20T08:00:00Z, not {shown(value)}") from None


_MOMENT: Schema = {**INSTANT, "description": "RFC 3339; it is included itself."}
_WHEN = Field(Check(schema=_MOMENT, run=_instant), required=False)

LIMIT = Field(whole_number(1, MAX_LIMIT, default=DEFAULT_LIMIT), required=False)
"""The greatest number of entries in the response."""

PERIOD: RequestFields = {
    "start": _WHEN,
    "end": _WHEN,
    "limit": LIMIT,
}
"""The fields of `history.period.Period`."""
