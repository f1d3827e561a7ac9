"""The version and its release date. The version is defined only here. A clock with an earlier date is wrong."""

from datetime import UTC, datetime

VERSION = "0.3.0"

MADE_AT = datetime(2026, 11, 23, tzinfo=UTC)
