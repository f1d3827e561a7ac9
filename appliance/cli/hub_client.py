"""Asking the hub that runs on a data directory, over the socket there; or doing without it where none runs."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from appliance.cli.paths import HubPaths
from appliance.clock import Clock
from appliance.errors import StartFailed
from appliance.store.lock import DirectoryLock
from appliance.store.replacement import finish_at_start, read_present

SOCKET = "key.sock"
MAX_PATH_BYTES = 107
"""Bytes that the name of a socket may have."""

HUB_TIMEOUT_SECS = 60.0
HUB_START_SECS = 10.0
"""How long a hub may take to start, or another command to end."""

HUB_RETRY_SECS = 0.05

Reply = dict[str, Any]


async def ask(data_dir: Path, request: Mapping[str, Any]) -> Reply:
    """What the hub on this data directory answers; raises `OSError` where none does, and nothing was asked.

    `StartFailed`: it refused what was asked, or it was asked and went away.
    """
    with socket_path(data_dir) as path:
        reader, writer = await asyncio.open_unix_connection(path)
    try:
        async with asyncio.timeout(HUB_TIMEOUT_SECS):
            writer.write(orjson.dumps(request) + b"\n")
            return _checked(orjson.loads(await reader.read(-1)))
    except (OSError, ValueError):
        raise StartFailed(
            "the hub has ended without an answer; `lares key list` shows what it has done", os.EX_UNAVAILABLE
        ) from None
    finally:
        writer.close()


def ask_hub(arguments: argparse.Namespace, request: Mapping[str, Any]) -> Reply:
    """What the hub of the command line's data directory answers; `StartFailed` where none runs, or it refuses."""
    folder = HubPaths.of_process(arguments.config, arguments.data_dir).find_data_dir()
    try:
        return asyncio.run(ask(folder, request))
    except PermissionError:
        raise StartFailed(f"the hub of {folder} answers only its own user and root", os.EX_NOPERM) from None
    except OSError:
        raise StartFailed(f"no hub answers on {folder}; `lares run` starts one", os.EX_UNAVAILABLE) from None


async def ask_or_act(data_dir: Path, request: Mapping[str, Any], act: Callable[[], Awaitable[Reply]]) -> Reply:
    """The answer of the hub that holds the data directory, or that of `act`, which has the store to itself.

    A restore that was cut off is finished first, else it would undo what `act` changes.
    Raises `StartFailed` where what was asked is refused, or where no answer can be had within `HUB_START_SECS`.
    """
    clock = Clock()
    deadline = clock.monotonic() + HUB_START_SECS
    while True:
        try:
            lock = DirectoryLock(data_dir, is_brief=True)
        except StartFailed as in_use:
            if in_use.exit_code != os.EX_TEMPFAIL:
                raise
            try:
                return await ask(data_dir, request)
            except OSError:
                if clock.monotonic() > deadline:
                    raise StartFailed(f"{in_use}, which does not answer; try again", os.EX_TEMPFAIL) from None
        else:
            try:
                finish_at_start(data_dir, clock.now())
                return _checked(await act())
            finally:
                lock.release()
        await clock.sleep(HUB_RETRY_SECS)


async def read_state(data_dir: Path) -> Mapping[str, bytes]:
    """The state of the running hub, by document key; where none runs, what the card holds."""
    try:
        reply = await ask(data_dir, {"do": "state"})
        return {key: orjson.dumps(value) for key, value in reply["values"].items()}
    except (OSError, StartFailed):
        return read_present(data_dir).values


@contextlib.contextmanager
def socket_path(folder: Path) -> Iterator[str]:
    """The socket's path; where it is too long for a socket's name, by way of the open folder."""
    path = str(folder / SOCKET)
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        yield path
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)


def _checked(reply: Reply) -> Reply:
    if "error" in reply:
        raise StartFailed(reply["error"], reply["code"])
    return reply
