"""Fixtures of the API's tests: a hub for all tests of a file, and its log."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.fakes.app import App, open_app


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[App]:
    """Provide one running hub for all tests of a file. The hub and the tests share an event loop."""
    async with open_app() as app:
        yield app


@pytest.fixture
def quiet_log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Fail the test if the log contains an error, or a traceback at a normal level."""
    caplog.set_level(logging.INFO)
    yield caplog
    for entry in caplog.get_records("call"):
        assert entry.levelno < logging.ERROR, entry.getMessage()
        assert entry.exc_info is None or entry.levelno < logging.INFO, entry.getMessage()
        assert "Traceback" not in entry.getMessage(), entry.getMessage()
