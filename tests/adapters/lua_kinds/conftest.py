"""A pool for all tests of a file."""

from __future__ import annotations

from tests.lua.conftest import pool

__all__ = ["pool"]
