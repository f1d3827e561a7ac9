"""Threads for slow computations by kinds in Lua. Scenes use other threads, so scenes never wait for these
computations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


async def compute_apart(function: Callable[..., T], *arguments: Any) -> T:
    """On a thread, run a function that takes milliseconds, and return its result."""
    return await asyncio.get_running_loop().run_in_executor(_threads("kinds"), function, *arguments)


async def compute_slowly(function: Callable[..., T], *arguments: Any) -> T:
    """On a thread, run a function that may take a second, and return its result. Only one such function runs at a
    time."""
    return await asyncio.get_running_loop().run_in_executor(_threads("kinds-slow", 1), function, *arguments)


@cache
def _threads(name: str, count: int = 2) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix=name)
