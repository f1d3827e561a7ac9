"""`lares run`: the hub."""

from __future__ import annotations

import argparse
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from appliance import config, tasks
from appliance.cli.logs import start_logging
from appliance.cli.owner import refuse_other_home
from appliance.cli.paths import HubPaths, bundled_config, make_data_dir, read_template, write_config
from appliance.cli.serve import end_process, serve
from appliance.hub import Hub
from appliance.log_buffer import LogBuffer
from appliance.lua.process import protect_memory
from appliance.settings import Logging
from appliance.version import VERSION

LOGGING = Logging(level="info", format="text")
"""The log's settings until the configuration is read."""

log = logging.getLogger("hub")


def run(arguments: argparse.Namespace, greet: Callable[[int], None] = lambda port: None) -> int:
    """Run the hub until a signal asks it to stop; the exit code. `greet` is called with the port once it listens."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    protect_memory()
    paths = HubPaths.of_process(arguments.config, arguments.data_dir)
    file, data_dir = paths.find_config(), paths.find_data_dir()
    refuse_other_home(data_dir, file)
    is_new = not file.exists()
    if is_new:
        write_config(file.parent, read_template(bundled_config()))
        start_logging(LOGGING, os.environ)
        log.info("there was no configuration: the bundled one is now in %s", file.parent)
    settings = config.load(file, os.environ)
    if (port := getattr(arguments, "port", None)) is not None:
        address = replace(settings.api.bind_address, port=port)
        settings = replace(settings, api=replace(settings.api, bind_address=address))
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
    tasks.run(_serve(settings, data_dir, log_buffer, greet, is_safe=is_safe))
    return os.EX_OK


async def _serve(
    settings: config.Config, data_dir: Path, log_buffer: LogBuffer, greet: Callable[[int], None], *, is_safe: bool
) -> None:
    """Serve until the end, and end the process then: all is stored, and a thread that hangs must not keep it."""

    def on_listening(_: Hub, port: int) -> None:
        _announce_listening(settings, port)
        greet(port)

    await serve(settings, data_dir, on_listening, is_safe=is_safe, log_buffer=log_buffer)
    end_process(os.EX_OK)


def _announce_listening(settings: config.Config, port: int) -> None:
    host = settings.api.bind_address.host
    shown = f"[{host}]" if ":" in host else host
    log.info("listening at http://%s:%d", shown, port)
    for name in settings.adapters:
        log.info("%s: enabled", name)
    if not settings.adapters:
        log.info("no adapter is enabled; enable one in %s and start again", settings.file)
