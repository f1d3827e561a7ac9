"""What is imported late: libraries that a first answer does not need, and that take long to import.

Importing what the hub may come to use takes several times as long as all that it does at a start. So these modules
are imported where they are first used, inside a function, and `import_ahead` imports some of them on a thread once
the hub answers, so that no request waits for them.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterable

LATE = (
    "aiohttp",  # for adapters; with its TLS contexts a third of a start
    "aiomqtt",  # only for an MQTT broker
    "argon2",  # only for keys that are kept as hashes
    "astral",  # only where a file names the sun
    "croniter",  # only where a file names a cron expression
    "defusedxml",  # only for a Roku
    "jinja2",  # only for templates that are announced on a broker
    "watchfiles",  # only where folders are watched
)
"""A hub whose configuration needs none of these has imported none when it begins to respond."""

FIRST_ANSWER_SECS = 0.05
"""So long the imports leave the processor to the client that has waited for the hub to answer."""


async def import_ahead(modules: Iterable[str]) -> None:
    """Import the modules on a thread, one after another, so that the loop goes on meanwhile."""
    for module in modules:
        await asyncio.to_thread(importlib.import_module, module)
