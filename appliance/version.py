"""The version, written once, and when it was made: no clock that shows an earlier time is right."""

from datetime import UTC, datetime

VERSION = "0.3.0"

MADE_AT = datetime(2026, 11, 23, tzinfo=UTC)
