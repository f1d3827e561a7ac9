"""Imports modules ahead of their use."""

from __future__ import annotations

import asyncio
import gc
import importlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

FIRST_ANSWER_SECS = 0.05
"""Seconds in which imports leave the processor to clients that waited for the hub."""


@contextmanager
def frozen_imports() -> Iterator[None]:
    """Collect no garbage while importing, which creates almost none, then freeze existing objects."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


async def import_ahead(modules: Iterable[str]) -> None:
    """Import the modules on a thread, one after another, so that the loop continues meanwhile.

    Libraries that the first response does not need, and that take long to import (aiohttp, aiomqtt, argon2, astral,
    croniter, defusedxml, jinja2, watchfiles), are imported inside functions, at their first use. Otherwise, they
    would multiply the start time. This function imports some of them once the hub answers requests, so that no
    request waits for them.
    """
    for module in modules:
        await asyncio.to_thread(importlib.import_module, module)
