"""Runs the hub and its API from the start until a signal stops them."""

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

from appliance.allocator import serve_python
from appliance.api.frames import frame_of
from appliance.cli.config_swap import settle_at_start
from appliance.cli.keyring import open_keyring
from appliance.cli.process.control_socket import ControlSocket, restore_missing
from appliance.cli.process.garbage import exclude_devices, exclude_present, return_unused
from appliance.cli.process.notifier import Notifier
from appliance.clock import Clock
from appliance.config import Config
from appliance.config_changes import LoadConfig
from appliance.home.events import Event
from appliance.hub import Hub
from appliance.imports import FIRST_ANSWER_SECS, frozen_imports
from appliance.log_buffer import LogBuffer
from appliance.store.disk import Disk
from appliance.tasks import Tasks, end_limits_within

log = logging.getLogger("hub")

STOP_LIMIT_SECS = 4.4
"""Maximum seconds from the stop signal to the end of the process. Service managers kill the hub only after ten
seconds."""

CLEANUP_LIMIT_SECS = 3.6
"""Maximum seconds from the stop signal to the end of adapters and of the last requests to servers. The history is
written afterwards."""


async def serve(
    config: Config,
    data_dir: Path,
    on_listening: Callable[[Hub, int], None],
    *,
    is_safe: bool = False,
    log_buffer: LogBuffer | None = None,
    load: LoadConfig | None = None,
) -> None:
    """Run the hub until SIGTERM or SIGINT. If a second signal arrives, or if the stop exceeds its time limit, the
    process ends at once.

    Call `on_listening` with the hub and the port as soon as the hub answers requests. If `is_safe` is true, the hub
    runs no automations. `log_buffer` contains earlier log lines.
    """
    clock = Clock()
    disk = Disk(data_dir)
    hub = Hub(config, disk, clock, is_safe=is_safe, log_buffer=log_buffer, frame_of=frame_of, load=load)
    stop, hangup = _listen_to_signals(hub)
    notifier = Notifier(os.environ, clock)
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(Tasks())
        tasks.start(notifier.feed_watchdog(), "watchdog")
        importing = tasks.start(_import_api(hub), "import of the API")
        if not await _start_unless_stopped(hub, stack, stop):
            log.info("stopped during the start")
            return
        await asyncio.to_thread(settle_at_start, Path(config.file), clock.now())
        keyring = stack.enter_context(closing(await open_keyring(config.auth, hub.store.keys, data_dir, clock)))
        control = stack.enter_context(ControlSocket(data_dir))
        server = (await importing)(hub, keyring, config, data_dir)
        await stack.enter_async_context(server)
        if control.bound is not None:
            await server.serve_control(control.bound)
        on_listening(hub, server.port)
        when_ready(hub, exclude_present)
        exclude_devices(hub.bus)
        when_ready(hub, serve_python)
        when_ready(hub, notifier.ready)
        async with Tasks() as working:
            working.start(_start_adapters(hub), "start of the adapters")
            working.start(_reload_on(hangup, hub, notifier), "reload on SIGHUP")
            check_folder = partial(hub.store.thread.run, disk.check_folder)
            working.start(
                restore_missing(control, server.serve_control, check_folder, clock), "check of the control socket"
            )
            working.start(return_unused(clock, hub.pack), "return of memory")
            await stop.wait()
        log.info("stopping")
        hub.begin_to_stop()
        notifier.stopping()
        # Requests and executions may use most of the time limit, so the state is stored now and after they end.
        tasks.start(hub.record_stored(), "write at the stop")
    log.info("stopped")


async def _start_unless_stopped(hub: Hub, stack: AsyncExitStack, stop: asyncio.Event) -> bool:
    """Start the hub, and return true. If `stop` is set during the start, stop the started parts, and return false."""
    starting = asyncio.current_task()
    assert starting is not None

    async def cancel_start() -> None:
        await stop.wait()
        starting.cancel()

    async with Tasks() as tasks:
        tasks.start(cancel_start(), "stop during the start")
        try:
            await stack.enter_async_context(hub)
        except asyncio.CancelledError:
            if not stop.is_set():
                raise
            starting.uncancel()
            return False
    return True


async def _import_api(hub: Hub) -> Any:
    """Import the server while the Lua worker starts, because the import takes long."""
    await hub.worker_starts.wait()
    with frozen_imports():
        from appliance.cli.process.api_server import build_server
    return build_server


async def _start_adapters(hub: Hub) -> None:
    """Start the adapters after a delay, so that the hub first answers waiting clients."""
    await hub.clock.sleep(FIRST_ANSWER_SECS)
    await hub.adapters.begin()


def when_ready(hub: Hub, on_ready: Callable[[], None]) -> None:
    """Call `on_ready` once every adapter has finished its first poll."""

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
        except Exception as error:  # the hub must also handle the next SIGHUP
            log.error("the reload failed: %s: %s", type(error).__name__, error, exc_info=error)
        finally:
            notifier.ready()


def _listen_to_signals(hub: Hub) -> tuple[asyncio.Event, asyncio.Event]:
    """Return two events: one for the first stop signal, one for each reload signal."""
    loop, stop, hangup = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def ask_to_stop(number: int) -> None:
        if not stop.is_set():
            limit_stop(lambda: hub.store.is_stored)
            end_limits_within(CLEANUP_LIMIT_SECS)
        hub.record_stop()
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    def ask_to_reload() -> None:
        log.info("reload requested")
        hangup.set()

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, ask_to_stop, each)
    loop.add_signal_handler(signal.SIGHUP, ask_to_reload)
    # a supervisor can block signals for its own threads, and its children inherit that
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    return stop, hangup


def limit_stop(is_stored: Callable[[], bool]) -> None:
    """End the process after `STOP_LIMIT_SECS` if it is still running. If `is_stored` then returns true, the exit code
    is 0.

    A thread that waits for a name server cannot be interrupted, and Python would wait for this thread. No
    acknowledged change is lost, because every acknowledged change is already stored.
    """
    timer = threading.Timer(STOP_LIMIT_SECS, _end_late, [is_stored])
    timer.daemon = True
    timer.start()


def end_process(code: int) -> NoReturn:
    """End the process now with this exit code, without waiting for threads."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _end_late(is_stored: Callable[[], bool]) -> None:
    if is_stored():
        log.warning(
            "the hub did not stop within %g s; its state is stored, but its newest history may be lost",
            STOP_LIMIT_SECS,
        )
        end_process(os.EX_OK)
    log.error("the hub did not stop within %g s; the process ends now", STOP_LIMIT_SECS)
    end_process(os.EX_SOFTWARE)
