"""Fixtures of the attacks."""

from tests.api.conftest import quiet_log

__all__ = ["quiet_log"]
