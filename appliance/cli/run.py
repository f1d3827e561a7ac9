"""`lares run`: runs the hub and its API until a signal stops them."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from appliance import config
from appliance.adapters.lua_kinds.host import SectionFault
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.allocator import limit_pools
from appliance.cli.initial_config import read_template, write_config
from appliance.cli.log_output import start_logging
from appliance.cli.machine_zone import in_machine_zone
from appliance.cli.owner import refuse_other_home
from appliance.cli.paths import HubPaths, make_data_dir
from appliance.cli.process.garbage import COLLECTION_THRESHOLDS
from appliance.cli.process.memory_protection import protect_memory
from appliance.cli.process.output_writer import unblock
from appliance.cli.process.serve import end_process, serve
from appliance.config_changes import LoadConfig
from appliance.event_loop import run as run_loop
from appliance.hub import Hub
from appliance.log_buffer import LogBuffer
from appliance.settings import Logging
from appliance.tables.addresses import bracketed
from appliance.version import VERSION

LOGGING = Logging(level="info", format="text")
"""The log settings before the configuration is read."""

log = logging.getLogger("hub")


def run(arguments: argparse.Namespace, greet: Callable[[int], None] = lambda port: None) -> int:
    """Run the hub until a signal stops it. Call `greet` with the port as soon as the hub listens."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    limit_pools()
    unblock("stderr")
    protect_memory()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    paths = HubPaths.of_process(arguments)
    file, data_dir = paths.find_config(), paths.find_data_dir()
    refuse_other_home(data_dir, file)
    is_new = not file.exists()
    if is_new:
        write_config(file.parent, in_machine_zone(read_template(config.bundled_config())))
        start_logging(LOGGING, os.environ)
        log.info("no configuration found: the bundled one was copied to %s", file.parent)
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
        log.warning("started with --safe: automations do not run")
    run_loop(_serve(settings, data_dir, log_buffer, greet, load, is_safe=is_safe))
    return os.EX_OK


def _load(file: Path, port: int | None) -> config.Config:
    """Load the configuration. A port from the command line replaces the configured port."""
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
    """Serve requests until the hub stops, then end the process. Do not wait for threads, because all data is
    already stored."""

    def on_listening(hub: Hub, port: int) -> None:
        _announce_listening(settings, hub, port)
        greet(port)

    await serve(settings, data_dir, on_listening, is_safe=is_safe, log_buffer=log_buffer, load=load)
    end_process(os.EX_OK)


def _announce_listening(settings: config.Config, hub: Hub, port: int) -> None:
    host = settings.api.bind_address.host
    log.info("listening at http://%s:%d", bracketed(host), port)
    for name, section in settings.adapters.items():
        if not (isinstance(section, LuaSection) and isinstance(hub.kinds.find(section), SectionFault)):
            log.info("%s: enabled", name)
    if not settings.adapters:
        log.info("no adapter is enabled; enable one in %s and run `lares reload`", settings.file)
