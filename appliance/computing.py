"""Threads for slow computations. Scenes use other threads, so scenes never wait for these computations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


async def compute_apart(function: Callable[..., T], *arguments: Any) -> T:
    """On a thread for devices' answers, run a function that takes milliseconds, and return its result."""
    return await asyncio.get_running_loop().run_in_executor(_threads("kinds", 2), function, *arguments)


async def compute_alone(purpose: str, function: Callable[..., T], *arguments: Any) -> T:
    """On the purpose's own thread, run a function that may take a second, and return its result. Only one such
    function per purpose runs at a time, because computing threads delay each other and the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_threads(purpose, 1), function, *arguments)


@cache
def _threads(name: str, count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix=name)
