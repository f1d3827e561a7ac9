"""Changes of the layout. Changes are checked in order, and become visible when they are stored."""

from __future__ import annotations

from appliance.home.layout import Change, Layout, LayoutChange
from appliance.home.registry import Registry
from appliance.store.document import Document, encode_values
from appliance.store.file_format import EncodedChanges
from appliance.store.records import encode_layout_change


class Changes:
    """Changes rooms, groups, places, and names. Each change is checked against the layout after earlier changes, and
    becomes visible when it is stored."""

    def __init__(self, registry: Registry, document: Document) -> None:
        self._registry = registry
        self._document = document
        self._ahead: tuple[EncodedChanges | None, Layout] = (None, registry.layout)

    async def make(self, change: Change) -> Layout:
        """Make the change, and return the changed layout. Raise `NotFound`, `Invalid`, or `StoreFailed`."""
        made: list[LayoutChange] = []

        def prepare(before: EncodedChanges) -> EncodedChanges:
            layout = self._ahead[1] if self._ahead[0] is before else self._registry.layout
            self._ahead = before, layout
            made[:] = [self._registry.preview(change, layout)]
            self._ahead = before, made[0].layout
            return encode_values(encode_layout_change(made[0]))

        await self._document.change(prepare, lambda: self._registry.commit(made[0]))
        return made[0].layout
