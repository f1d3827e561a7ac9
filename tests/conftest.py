"""What every test has at hand."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from sanic import Sanic

from tests.fakes import witness
from tests.fakes.house import House, open_house

Sanic.test_mode = True
"""Sanic rewrites its own methods at start and can do so once a process only, unless it is told of tests."""


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """A house that is ready."""
    async with open_house() as opened:
        yield opened


def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Put the witness's verdict last, after everything that it is about."""
    items.sort(key=lambda item: item.name == "test_every_route_has_given_each_of_its_answers_over_http")
    session.config.stash[witness.WHOLE] = {item.path for item in items}
