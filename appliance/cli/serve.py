"""Serving: the hub and its API together, from the start to a signal."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from appliance.adapters.discovery.discovery import Discovery
from appliance.api.app import build_app
from appliance.api.connections import ApiLimits
from appliance.api.frames import frame_of
from appliance.api.keyring import Access
from appliance.api.server import Server
from appliance.cli.control_socket import control_socket
from appliance.cli.first_key import open_access
from appliance.cli.single_file import finish_upgrade
from appliance.cli.systemd_notify import Notifier
from appliance.clock import Clock
from appliance.config import Config, list_kinds
from appliance.home.events import Event
from appliance.hub import Hub
from appliance.late import FIRST_ANSWER_SECS
from appliance.log_buffer import LogBuffer
from appliance.store.disk import Disk
from appliance.tasks import Tasks

STOP_LIMIT_SECS = 4.8
"""How long a stop may take from its signal on; the service managers that ask for five seconds kill after that."""

log = logging.getLogger("hub")


async def serve(
    config: Config,
    data_dir: Path,
    on_listening: Callable[[Hub, int], None],
    *,
    is_safe: bool = False,
    log_buffer: LogBuffer | None = None,
) -> None:
    """Run the hub until SIGTERM or SIGINT; a second one, or the end of the time for a stop, ends the process at once.

    `on_listening` is called with the hub and the port as soon as requests are answered. A hub that `is_safe` runs no
    automations. `log_buffer` holds what was logged before.
    """
    clock = Clock()
    hub = Hub(config, Disk(data_dir), clock, is_safe=is_safe, log_buffer=log_buffer, frame_of=frame_of)
    stop, hangup = _listen_to_signals(hub)
    notifier = Notifier(os.environ, clock)
    limits = ApiLimits.of(config.api)
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(Tasks())
        tasks.start(notifier.feed_watchdog(), "watchdog")
        await stack.enter_async_context(hub)
        access = stack.enter_context(closing(await open_access(config.auth, hub.keys, data_dir, clock)))
        app = _build_app(hub, access, limits, config, data_dir)
        control = stack.enter_context(control_socket(data_dir))
        server = Server(app, config.api.bind_address, limits, clock, abort_all=hub.abort_all, control=control)
        await stack.enter_async_context(server)
        on_listening(hub, server.port)
        when_ready(hub, notifier.ready)
        tasks.start(finish_upgrade(clock), "single file")
        async with Tasks() as working:
            working.start(_start_adapters(hub), "start of the adapters")
            working.start(_reload_on(hangup, hub, notifier), "reload on SIGHUP")
            await stop.wait()
        log.info("stopping")
        hub.begin_to_stop()
        notifier.stopping()
    log.info("stopped")


async def _start_adapters(hub: Hub) -> None:
    """Let the adapters begin once clients that waited for the hub to listen may have their answers."""
    await hub.clock.sleep(FIRST_ANSWER_SECS)
    await hub.adapters.begin()


def _build_app(hub: Hub, access: Access, limits: ApiLimits, config: Config, data_dir: Path) -> Any:
    """The application as the configuration asks for it."""
    return build_app(
        hub,
        access,
        limits,
        config.runtime.event_bus_capacity,
        search=Discovery(hub.clock, partial(list_kinds, Path(config.file)), lambda: config.adapter_names).search,
        has_dashboard=config.dashboard.enabled,
        make_backup=partial(_pack_backup, Path(config.file), data_dir),
    )


def _pack_backup(config: Path, data_dir: Path) -> bytes:
    from appliance.cli.backup import pack_backup

    return pack_backup(config, data_dir)


def when_ready(hub: Hub, on_ready: Callable[[], None]) -> None:
    """Call `on_ready` once nothing is missing any more: every adapter has ended its first poll."""

    def look(_: Event | None = None) -> None:
        if not hub.health.list_missing():
            forget()
            on_ready()

    forget = hub.bus.listen(look)
    look()


async def _reload_on(hangup: asyncio.Event, hub: Hub, notifier: Notifier) -> None:
    while await hangup.wait():
        hangup.clear()
        notifier.reloading()
        try:
            await hub.reload()
        except Exception as error:  # the next SIGHUP is to be answered too
            log.error("the reload failed: %s: %s", type(error).__name__, error, exc_info=error)
        finally:
            notifier.ready()


def _listen_to_signals(hub: Hub) -> tuple[asyncio.Event, asyncio.Event]:
    """What is set by the first signal that asks for the end, and by each that asks for a reload."""
    loop, stop, hangup = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def ask_to_stop(number: int) -> None:
        hub.note_stop()
        if stop.is_set():
            os._exit(128 + number)
        limit_stop()
        stop.set()

    def ask_to_reload() -> None:
        log.info("asked to reload")
        hangup.set()

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, ask_to_stop, each)
    loop.add_signal_handler(signal.SIGHUP, ask_to_reload)
    return stop, hangup


def limit_stop() -> None:
    """End the process `STOP_LIMIT_SECS` from now, if it has not ended by itself.

    A thread that waits for a name server cannot be interrupted, and Python would wait for it before it ends.
    Nothing that was acknowledged is lost by it: that is on the card since it was acknowledged.
    """
    timer = threading.Timer(STOP_LIMIT_SECS, _end_late)
    timer.daemon = True
    timer.start()


def end_process(code: int) -> NoReturn:
    """End the process with this exit code now, and wait for no thread."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _end_late() -> None:
    log.error("the stop took longer than %g s; the process is ended", STOP_LIMIT_SECS)
    end_process(os.EX_SOFTWARE)
