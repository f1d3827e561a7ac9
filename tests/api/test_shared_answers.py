"""Slow answers are computed once for all clients that request them at the same time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from appliance.api.route import ApiResource
from appliance.api.routes.completions import CompletionsApi
from appliance.api.routes.status import StatusApi

CLIENTS = 16


class Computed(Exception):
    """Raised by the first step of a computation, so that a test needs no other part of the hub."""


class Hub:
    """The first parts that the computations use. Counts the computations."""

    def __init__(self) -> None:
        self.computations = 0
        self.recorder = SimpleNamespace(list_present=self._compute_later)
        self.names = SimpleNamespace(find_known=self._compute_later)
        self.figures = SimpleNamespace(tree=self._compute)

    def _compute(self) -> object:
        self.computations += 1
        raise Computed

    async def _compute_later(self, *_: object) -> object:
        await asyncio.sleep(0)
        return self._compute()


@pytest.mark.parametrize(
    ("resource", "handler"),
    [(StatusApi, "list_state"), (StatusApi, "show_status"), (CompletionsApi, "list_all")],
)
async def test_clients_share_one_computation(resource: type[ApiResource], handler: str) -> None:
    hub = Hub()
    parts: Any = SimpleNamespace(hub=hub, figures=hub.figures)
    handle = getattr(resource(parts), handler)
    results = await asyncio.gather(*(handle(None) for _ in range(CLIENTS)), return_exceptions=True)
    assert hub.computations == 1
    assert [type(each) for each in results] == [Computed] * CLIENTS
