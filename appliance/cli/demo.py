"""`lares demo`: a home to try, with a simulated device of each kind of adapter whose row says so."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from appliance import config
from appliance.adapters.kinds import KINDS
from appliance.api.frames import frame_of
from appliance.api.key_tokens import KeyToken
from appliance.cli.logs import start_logging
from appliance.cli.owner import refuse_other_home
from appliance.cli.paths import CONFIG_FILE, find_template, make_data_dir, read_template, write_config
from appliance.cli.serve import serve, when_ready
from appliance.config import Config
from appliance.home.events import Event
from appliance.hub import Hub
from appliance.settings import Auth
from appliance.tables.addresses import Address

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 3000


def demo(arguments: argparse.Namespace) -> int:
    """Run the demo until a signal asks it to stop; the exit code."""
    if arguments.data_dir:
        refuse_other_home(Path(arguments.data_dir))
    port = _choose_port() if arguments.port is None else arguments.port
    with tempfile.TemporaryDirectory(prefix="lares-demo-") as folder:
        file = Path(folder) / CONFIG_FILE.parent / Path(arguments.config or CONFIG_FILE).name
        write_config(file.parent, read_template(find_template(arguments.config)))
        settings = config.load(file, {})
        start_logging(replace(settings.logging, level="warning"), os.environ)
        asyncio.run(_run(settings, Path(arguments.data_dir or Path(folder) / "data"), port))
    left = "its data stays" if arguments.data_dir else "nothing of it is left"
    print(f"The demo has ended; {left}.", flush=True)
    return os.EX_OK


async def _run(settings: Config, data_dir: Path, port: int) -> None:
    make_data_dir(data_dir)
    async with AsyncExitStack() as stack:
        adapters, urls = await _simulate(stack)
        key = KeyToken.make("demo").text
        home = replace(
            settings,
            auth=Auth(master_key=key, source="the demo"),
            api=replace(settings.api, bind_address=Address(host=LOOPBACK, port=port)),
            adapters=adapters,
        )

        def greet(hub: Hub, port: int) -> None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, _end)
            when_ready(hub, lambda: _begin_showing(hub, _greeting(f"{LOOPBACK}:{port}", key, urls)))

        await serve(home, data_dir, greet)


async def _simulate(stack: AsyncExitStack) -> tuple[dict[str, Any], dict[str, str]]:
    """The section of each simulated device by its name, and its URL by what the demo calls it."""
    adapters, urls = dict[str, Any](), dict[str, str]()
    for kind in KINDS.values():
        simulation = kind.simulation
        if simulation is not None and simulation.in_demo is not None:
            device = await stack.enter_async_context(kind.simulate())
            adapters[kind.name], urls[simulation.in_demo] = simulation.settings(device), device.url
    return adapters, urls


def _greeting(address: str, key: str, urls: Mapping[str, str]) -> str:
    devices = " and ".join(f"a {name} ({url})" for name, url in urls.items())
    ask = f"curl -s -H 'Authorization: Bearer {key}' http://{address}"
    dim = '{"capability":"brightness","action":"set","value":80}'
    on = '{"capability":"power","action":"on"}'
    return f"""
Lares runs a home to try: {devices}, {"both" if len(urls) == 2 else "all"} simulated.

    page     http://{address}/?token={key}
    REST     http://{address}
    events   ws://{address}/events
    key      {key}

Try, in another terminal:

    {ask}/devices
    {ask}/devices/elgato_lights:light:0/command -d '{on}'
    {ask}/devices/elgato_lights:light:0/command -d '{dim}'

What happens shows here, as the event stream sends it. Ctrl-C ends the demo.
"""


def _begin_showing(hub: Hub, greeting: str) -> None:
    _print_at_once(greeting)
    hub.bus.listen(_show)


def _show(event: Event) -> None:
    frame = frame_of(event)
    if frame is not None:
        _print_at_once(frame.decode())


def _print_at_once(text: str) -> None:
    """Print and flush; the demo ends when standard output is closed."""
    try:
        print(text, flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - for what is still to be printed
        _end()


def _end() -> None:
    signal.raise_signal(signal.SIGTERM)


def _choose_port() -> int:
    """The usual port, or one that is free where another program has that."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, DEFAULT_PORT))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return 0
            raise
    return DEFAULT_PORT
