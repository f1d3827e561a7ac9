"""Imports modules before they are needed."""

from __future__ import annotations

import asyncio
import gc
import importlib
import ssl
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

FIRST_ANSWER_SECS = 0.05
"""Delay in seconds between the hub's start and the first import, so that waiting clients are served first."""


@contextmanager
def frozen_imports() -> Iterator[None]:
    """Disable garbage collection during imports, because imports leave almost no garbage. Then freeze all existing
    objects."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


async def import_ahead(modules: Iterable[str]) -> None:
    """Import the modules one after another on a thread, so that the event loop is not blocked.

    Some libraries are slow to import, and the first response does not need them: aiohttp, aiomqtt, argon2, astral,
    croniter, defusedxml, jinja2, and watchfiles. Functions import these libraries at the first use, because imports
    at the start would multiply the start time. Once the hub answers requests, this function imports some of them, so
    that requests do not wait for imports.
    """
    for module in modules:
        await asyncio.to_thread(_import, module)


def _import(module: str) -> None:
    """Import the module, but do not let the TLS contexts that the module creates load the system's certificates.

    aiohttp creates two contexts, and the certificates in each take 1 MB. `DeviceConnector` loads the certificates
    before their first use.
    """
    _this_thread.is_importing = True
    try:
        importlib.import_module(module)
    finally:
        _this_thread.is_importing = False


_this_thread = threading.local()
_load_certificates = ssl.SSLContext.set_default_verify_paths


def _load_unless_importing(context: ssl.SSLContext) -> None:
    if not getattr(_this_thread, "is_importing", False):
        _load_certificates(context)


ssl.SSLContext.set_default_verify_paths = _load_unless_importing  # type: ignore[method-assign, assignment]
