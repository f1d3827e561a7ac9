"""Checks and stores changes of the layout, one after another."""

from __future__ import annotations

from appliance.home.layout import Change, Layout, LayoutChange
from appliance.home.registry import Registry
from appliance.store.document import Document, encode_values
from appliance.store.file_format import EncodedChanges
from appliance.store.records import encode_layout_change


class LayoutChanges:
    """Changes rooms, groups, places, and names. Each change is checked against the result of earlier changes, and
    becomes visible after it is stored."""

    def __init__(self, registry: Registry, document: Document) -> None:
        self._registry = registry
        self._document = document
        self._prepared: tuple[EncodedChanges, Layout] = ({}, registry.layout)

    async def make(self, change: Change) -> Layout:
        """Check and store the change. Return the changed layout. Raise `NotFound`, `Invalid`, or `StoreFailed` on
        failure."""
        made: LayoutChange

        def prepare(batch: EncodedChanges) -> EncodedChanges:
            nonlocal made
            layout = self._prepared[1] if self._prepared[0] is batch else self._registry.layout
            made = self._registry.preview(change, layout)
            self._prepared = batch, made.layout
            return encode_values(encode_layout_change(made))

        await self._document.change(prepare, lambda: self._registry.commit(made))
        return made.layout
