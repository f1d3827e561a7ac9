"""Checks and stores changes of the layout, one after another."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from appliance.clock import Clock
from appliance.event_loop import in_steps
from appliance.home.layout import Change, Layout, LayoutChange
from appliance.home.registry import Registry
from appliance.store.document import Document
from appliance.store.file_format import EncodedChanges, encode_values
from appliance.store.records import encode_layout_change
from appliance.tasks import Tasks

MAX_PUBLISHED_AT_ONCE = 64
"""If a change has more differences, the differences are published in steps. One room can contain thousands of
devices."""


class LayoutChanges:
    """Changes rooms, groups, places, and names. Each change is checked against the result of earlier changes, and
    becomes visible as a whole after it is stored. Then its events are published, in the order of the changes."""

    def __init__(self, registry: Registry, document: Document, clock: Clock) -> None:
        self._registry = registry
        self._document = document
        self._clock = clock
        self._prepared: tuple[EncodedChanges, Layout] = ({}, registry.layout)
        self._unpublished: deque[Iterator[None]] = deque()
        self._tasks = Tasks()
        self._publishing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> LayoutChanges:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    async def make(self, change: Change) -> Layout:
        """Check and store the change, and publish its events. Return the changed layout. Raise `NotFound`, `Invalid`,
        or `StoreFailed` on failure."""
        made: LayoutChange

        def prepare(batch: EncodedChanges) -> EncodedChanges:
            nonlocal made
            layout = self._prepared[1] if self._prepared[0] is batch else self._registry.layout
            made = self._registry.preview(change, layout)
            self._prepared = batch, made.layout
            return encode_values(encode_layout_change(made))

        await self._document.change(prepare, lambda: self._commit(made))
        if self._publishing is not None:
            await asyncio.wait({self._publishing})
        return made.layout

    def _commit(self, made: LayoutChange) -> None:
        self._unpublished.append(self._registry.commit(made))
        if self._publishing is None and len(made) <= MAX_PUBLISHED_AT_ONCE:
            for _ in self._unpublished.pop():
                pass
        elif self._publishing is None:
            self._publishing = self._tasks.start(self._publish(), "publishing of a changed layout")

    async def _publish(self) -> None:
        try:
            while self._unpublished:
                await in_steps(self._clock, self._unpublished.popleft())
        finally:
            self._publishing = None
