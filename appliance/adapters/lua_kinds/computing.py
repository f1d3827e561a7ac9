"""Separate threads for computations of kinds in Lua inside the hub, so that scenes never wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


async def compute_apart(function: Callable[..., T], *arguments: Any) -> T:
    """Return the result of a function that takes milliseconds, computed on a thread of kinds."""
    return await asyncio.get_running_loop().run_in_executor(_threads("kinds"), function, *arguments)


async def compute_slowly(function: Callable[..., T], *arguments: Any) -> T:
    """Return the result of a function that can take a second; these run one at a time and block nothing else."""
    return await asyncio.get_running_loop().run_in_executor(_threads("kinds-slow", 1), function, *arguments)


@cache
def _threads(name: str, count: int = 2) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix=name)
