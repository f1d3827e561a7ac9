"""`lares run`: the hub and its API together, from the start to a signal."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from msgspec.structs import replace

from appliance import config
from appliance.adapters.lua_kinds.host import SectionFault
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.api.frames import frame_of
from appliance.api.sanic_http.unused import leave_out_unused
from appliance.cli.control_socket import control_socket
from appliance.cli.first_key import open_keyring
from appliance.cli.initial_config import read_template, write_config
from appliance.cli.logs import start_logging
from appliance.cli.owner import refuse_other_home
from appliance.cli.paths import HubPaths, make_data_dir
from appliance.clock import Clock
from appliance.config_changes import LoadConfig
from appliance.event_loop import run as run_loop
from appliance.home.events import Event
from appliance.hub import Hub
from appliance.imports import FIRST_ANSWER_SECS, frozen_imports
from appliance.log_buffer import LogBuffer
from appliance.lua.process import protect_memory
from appliance.memory import keep_present, limit_allocator, return_unused
from appliance.settings import Logging
from appliance.store.disk import Disk
from appliance.tasks import Tasks
from appliance.version import VERSION

LOGGING = Logging(level="info", format="text")
"""The log settings before the configuration is read."""

log = logging.getLogger("hub")


def run(arguments: argparse.Namespace, greet: Callable[[int], None] = lambda port: None) -> int:
    """Run the hub until a signal stops it. Call `greet` with the port as soon as the hub listens."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    protect_memory()
    limit_allocator()
    paths = HubPaths.of_process(arguments.config, arguments.data_dir)
    file, data_dir = paths.find_config(), paths.find_data_dir()
    refuse_other_home(data_dir, file)
    is_new = not file.exists()
    if is_new:
        write_config(file.parent, read_template(config.bundled_config()))
        start_logging(LOGGING, os.environ)
        log.info("there was no configuration: the bundled one is now in %s", file.parent)
    load = partial(_load, file, getattr(arguments, "port", None))
    settings = load()
    start_logging(settings.logging, os.environ)
    log_buffer = LogBuffer()
    logging.getLogger().addHandler(log_buffer)
    log.info("Lares %s starts", VERSION, extra={"config": file, "data": data_dir, "pid": os.getpid()})
    for warning in settings.warnings:
        log.warning("%s", warning)
    make_data_dir(data_dir)
    is_safe = getattr(arguments, "safe", False)
    if is_safe:
        log.warning("started with --safe: no automation runs")
    run_loop(_serve(settings, data_dir, log_buffer, greet, load, is_safe=is_safe))
    return os.EX_OK


def _load(file: Path, port: int | None) -> config.Config:
    """Load the configuration. A port from the command line replaces the configured one."""
    settings = config.load(file, os.environ)
    if port is None:
        return settings
    address = replace(settings.api.bind_address, port=port)
    return replace(settings, api=replace(settings.api, bind_address=address))


async def _serve(
    settings: config.Config,
    data_dir: Path,
    log_buffer: LogBuffer,
    greet: Callable[[int], None],
    load: LoadConfig,
    *,
    is_safe: bool,
) -> None:
    """Serve until a stop. Then end the process without waiting for threads, because all data is already stored."""

    def on_listening(hub: Hub, port: int) -> None:
        _announce_listening(settings, hub, port)
        greet(port)

    await serve(settings, data_dir, on_listening, is_safe=is_safe, log_buffer=log_buffer, load=load)
    end_process(os.EX_OK)


def _announce_listening(settings: config.Config, hub: Hub, port: int) -> None:
    host = settings.api.bind_address.host
    shown = f"[{host}]" if ":" in host else host
    log.info("listening at http://%s:%d", shown, port)
    for name, section in settings.adapters.items():
        if not (isinstance(section, LuaSection) and isinstance(hub.kinds.find(section), SectionFault)):
            log.info("%s: enabled", name)
    if not settings.adapters:
        log.info("no adapter is enabled; enable one in %s and run `lares reload`", settings.file)


STOP_LIMIT_SECS = 4.8
"""Maximum seconds for a stop. Service managers kill the hub only after ten seconds."""


async def serve(
    config: config.Config,
    data_dir: Path,
    on_listening: Callable[[Hub, int], None],
    *,
    is_safe: bool = False,
    log_buffer: LogBuffer | None = None,
    load: LoadConfig | None = None,
) -> None:
    """Run the hub until SIGTERM or SIGINT. A second signal, or the time limit of a stop, ends the process at once.

    Call `on_listening` with the hub and the port as soon as the hub answers requests. With `is_safe`, the hub runs no
    automations. `log_buffer` contains earlier log lines.
    """
    clock = Clock()
    hub = Hub(config, Disk(data_dir), clock, is_safe=is_safe, log_buffer=log_buffer, frame_of=frame_of, load=load)
    stop, hangup = _listen_to_signals(hub)
    notifier = Notifier(os.environ, clock)
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(Tasks())
        tasks.start(notifier.feed_watchdog(), "watchdog")
        importing = tasks.start(_import_api(hub), "import of the API")
        await stack.enter_async_context(hub)
        keyring = stack.enter_context(closing(await open_keyring(config.auth, hub.keys, data_dir, clock)))
        control = stack.enter_context(control_socket(data_dir))
        server = (await importing)(hub, keyring, config, data_dir, control)
        await stack.enter_async_context(server)
        on_listening(hub, server.port)
        when_ready(hub, keep_present)
        when_ready(hub, notifier.ready)
        async with Tasks() as working:
            working.start(_start_adapters(hub), "start of the adapters")
            working.start(_reload_on(hangup, hub, notifier), "reload on SIGHUP")
            working.start(return_unused(clock, hub.pack), "return of memory")
            await stop.wait()
        log.info("stopping")
        hub.begin_to_stop()
        notifier.stopping()
    log.info("stopped")


async def _import_api(hub: Hub) -> Any:
    """Import the server while the Lua worker starts, because the import takes long."""
    await hub.worker_starts.wait()
    with frozen_imports():
        leave_out_unused()
        from appliance.cli.serving import build_server
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
        hub.record_stop()
        if stop.is_set():
            os._exit(128 + number)
        limit_stop()
        stop.set()

    def ask_to_reload() -> None:
        log.info("reload requested")
        hangup.set()

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, ask_to_stop, each)
    loop.add_signal_handler(signal.SIGHUP, ask_to_reload)
    return stop, hangup


def limit_stop() -> None:
    """End the process after `STOP_LIMIT_SECS` if it still runs.

    A thread that waits for a name server cannot be interrupted, and Python would wait for the thread. No acknowledged
    change is lost, because every acknowledged change is already stored.
    """
    timer = threading.Timer(STOP_LIMIT_SECS, _end_late)
    timer.daemon = True
    timer.start()


def end_process(code: int) -> NoReturn:
    """End the process now with this exit code, without waiting for threads."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _end_late() -> None:
    log.error("the stop took longer than %g s; the process is ended", STOP_LIMIT_SECS)
    end_process(os.EX_SOFTWARE)


class Notifier:
    """Sends the hub's state to systemd. Failures are ignored, because the watchdog detects a hub that hangs."""

    def __init__(self, environment: Mapping[str, str], clock: Clock) -> None:
        self._clock = clock
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._interval_secs = _half_the_watchdog(environment)

    def ready(self) -> None:
        """Notify systemd that the hub is ready, at the start and after `reloading`."""
        self._send("READY=1")

    def reloading(self) -> None:
        """Notify systemd that a reload begins. Call `ready` at the end of the reload."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={int(self._clock.monotonic() * 1e6)}")

    def stopping(self) -> None:
        """Notify systemd that the hub is stopping. Do not call `ready` afterwards."""
        self._send("STOPPING=1")

    async def feed_watchdog(self) -> None:
        """Send WATCHDOG=1 twice per watchdog interval. Without a watchdog, return at once."""
        while self._interval_secs:
            self._send("WATCHDOG=1")
            await self._clock.sleep(self._interval_secs)

    def _send(self, message: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
                sender.sendto(message.encode(), self._address)
        except OSError:
            return


def _address(named: str) -> str:
    """Return the socket's address. A leading @ means an abstract name."""
    return "\0" + named[1:] if named.startswith("@") else named


def _half_the_watchdog(environment: Mapping[str, str]) -> float:
    """Return half of the watchdog interval in seconds, or 0 without a watchdog."""
    usecs = environment.get("WATCHDOG_USEC", "")
    is_ours = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(usecs) / 2e6 if usecs.isdecimal() and is_ours else 0.0
