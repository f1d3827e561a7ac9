"""Threads of their own for what kinds in Lua compute in the hub, so that scenes never wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

MAX_THREADS = 2

T = TypeVar("T")


async def compute_apart(function: Callable[..., T], *arguments: Any) -> T:
    """Return the result of a function that takes long, computed on one of the threads of kinds."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), function, *arguments)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="kinds")
