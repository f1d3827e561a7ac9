"""Serving: the hub and its API together, from the start to a signal."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path

from appliance.api.app import build_app
from appliance.api.keyring import Keyring
from appliance.api.limits import Limits
from appliance.api.server import Server
from appliance.cli.first_key import open_door
from appliance.cli.key_desk import Desk
from appliance.cli.key_socket import KeySocket
from appliance.clock import Clock
from appliance.config import Config
from appliance.hub import Hub
from appliance.store.disk import Disk

log = logging.getLogger("hub")


async def serve(config: Config, data_dir: Path, on_listening: Callable[[Hub, int], None]) -> None:
    """Run the hub until SIGTERM or SIGINT; a second one ends the process at once.

    `on_listening` is called with the hub and the port as soon as requests are answered.
    """
    stop = _stop_on_signals()
    clock = Clock()
    limits = Limits.of(config.api)
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(Hub(config, Disk(data_dir), clock))
        door = stack.enter_context(closing(await open_door(config.auth, hub.keys, data_dir)))
        desk = Desk(Keyring(hub.keys, door.hasher, clock), config.auth, data_dir)
        app = build_app(hub, door, limits, config.runtime.event_bus_capacity)
        server = Server(app, door, config.api.bind_address, limits, clock)
        await stack.enter_async_context(KeySocket(desk, data_dir, clock))
        await stack.enter_async_context(server)
        on_listening(hub, server.port)
        await stop.wait()
        log.info("stopping")
    log.info("stopped")


def _stop_on_signals() -> asyncio.Event:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def ask_to_stop(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, ask_to_stop, each)
    loop.add_signal_handler(signal.SIGHUP, log.info, "asked to reload; there are no catalogs to load")
    return stop
