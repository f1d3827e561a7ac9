"""Access to the document on the card, for commands without a running hub."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from appliance.api.error_codes import status_of
from appliance.cli.exit_codes import exit_code_of
from appliance.clock import Clock
from appliance.errors import LaresError, StartFailed
from appliance.store.disk import Disk
from appliance.store.document import Document
from appliance.store.store_thread import StoreThread


@asynccontextmanager
async def open_document(data_dir: Path) -> AsyncIterator[tuple[Document, Clock]]:
    """Open the store without a running hub. An error has the same exit code as in the hub."""
    clock = Clock()
    async with StoreThread() as thread, Document(Disk(data_dir), clock, thread) as document:
        try:
            yield document, clock
        except LaresError as error:
            raise StartFailed(str(error), exit_code_of(status_of(error), error.code)) from None
