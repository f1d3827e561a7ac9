"""`lares demo`: runs a home with simulated devices. `--keep` saves the home."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import re
import shlex
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
from appliance.api.tokens import KeyToken
from appliance.cli.init import program_words
from appliance.cli.initial_config import write_config
from appliance.cli.log_output import discard, start_logging
from appliance.cli.machine_zone import read_initial_config
from appliance.cli.owner import refuse_other_home
from appliance.cli.paths import CONFIG_FILE, make_data_dir
from appliance.cli.process.output_writer import unblock
from appliance.cli.process.serve import serve, when_ready
from appliance.cli.run import run
from appliance.cli.terminal import check_reader, say, visible
from appliance.config import Config
from appliance.event_loop import run as run_loop
from appliance.home.events import Event
from appliance.hub import Hub
from appliance.settings import Auth
from appliance.tables.addresses import Address

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 3000

KEPT_HOME = Path(__file__).with_name("home_to_try.toml")
"""The section that `--keep` writes to the configuration."""


def demo(arguments: argparse.Namespace) -> int:
    """Run the demo until a signal stops it."""
    unblock("stdout")
    if arguments.keep:
        return _run_kept(arguments)
    unblock("stderr")
    if arguments.data_dir:
        refuse_other_home(Path(arguments.data_dir))
    port = _choose_port() if arguments.port is None else arguments.port
    with tempfile.TemporaryDirectory(prefix="lares-demo-") as folder:
        file = Path(folder) / CONFIG_FILE.parent / Path(arguments.config or CONFIG_FILE).name
        write_config(file.parent, read_initial_config(arguments))
        settings = config.load(file, {})
        start_logging(replace(settings.logging, level="warning"), os.environ)
        run_loop(_run(settings, Path(arguments.data_dir or Path(folder) / "data"), port))
    left = f"its data is in {arguments.data_dir}" if arguments.data_dir else "its files were removed"
    say(f"The demo has ended; {left}.")
    return os.EX_OK


def _run_kept(arguments: argparse.Namespace) -> int:
    """Run the home in the folder, like `lares run`. If the configuration is missing, first create it."""
    folder = Path(arguments.keep).absolute()
    refuse_other_home(folder)
    if ".." in folder.parts:
        folder = folder.resolve()
    file, port = folder / CONFIG_FILE, arguments.port or DEFAULT_PORT
    is_new = not file.exists()
    if is_new:
        template = read_initial_config(arguments)
        text, mode = template[Path(file.name)]
        write_config(file.parent, {**template, Path(file.name): (_kept_home(text.decode(), port).encode(), mode)})
        say(f"{folder} contains a demo home: a lamp, a motion sensor, a door, a plug, a button, and a thermometer.")
    arguments.config, arguments.data_dir = str(file), arguments.data_dir or str(folder / "data")
    data_dir = Path(arguments.data_dir)
    is_saved = is_new and arguments.port == port
    chosen = "" if arguments.port is None or is_saved else f" --port {arguments.port}"
    return run(arguments, lambda port: _print_at_once(_kept_greeting(f"{LOOPBACK}:{port}", folder, data_dir, chosen)))


def _kept_greeting(address: str, folder: Path, data_dir: Path, chosen_port: str) -> str:
    """Return the page's address, and the command that creates a key. The existing key cannot be shown, because
    only its hash is stored."""
    program = shlex.join(program_words(is_elsewhere=True))
    elsewhere = "" if data_dir == folder / "data" else f" --data-dir {shlex.quote(str(data_dir))}"
    return f"""
    page     http://{address}/      it asks for a key

Create a key in another terminal and enter it on the page. To change a sensor there, use "Simulate":

    cd {shlex.quote(str(folder))}
    {program} key create --label laptop --role admin{elsewhere}
    {program} devices{elsewhere}

Ctrl-C stops the demo; the home is kept. To start it again:

    {program} demo --keep {shlex.quote(str(folder))}{elsewhere}{chosen_port}
"""


def _kept_home(template: str, port: int) -> str:
    """Add the simulated devices to the configuration, and set a loopback address with this port. Do not change
    existing virtual devices."""
    if "[[adapters.virtual.devices]]" not in re.sub("(?m)^#.*", "", template):
        before, _, after = template.partition("[adapters.virtual]\n")
        home = KEPT_HOME.read_text(encoding="utf-8")
        _, _, rest = after.partition("\n\n")
        template = f"{before.rstrip()}\n{home}\n{rest}" if after else f"{before}\n{home}"
    return re.sub("(?m)^bind_address = .*$", f'bind_address = "{LOOPBACK}:{port}"', template, count=1)


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
    """Start the simulated devices. Return the devices' sections by section name, and the devices' URLs by device
    name."""
    adapters, urls = dict[str, Any](), dict[str, str]()
    for kind in KINDS.values():
        if kind.simulated is not None and kind.in_demo is not None:
            device = await stack.enter_async_context(kind.simulate())
            adapters[kind.name], urls[kind.in_demo] = kind.simulated(device), device.url
    return adapters, urls


def _greeting(address: str, key: str, urls: Mapping[str, str]) -> str:
    *others, last = [f"a {name} ({url})" for name, url in urls.items()]
    devices = f"{', '.join(others)} and {last}" if others else last
    ask = f"curl -s -H 'Authorization: Bearer {key}' http://{address}"
    dim = '{"capability":"brightness","action":"set","value":80}'
    on = '{"capability":"power","action":"on"}'
    return f"""
This is a demo of Lares with {devices}, {"both" if len(urls) == 2 else "all"} simulated.

    page     http://{address}/?token={key}
    REST     http://{address}
    events   ws://{address}/events
    key      {key}

Try, in another terminal:

    {ask}/devices
    {ask}/devices/elgato_lights:light:0/command -d '{on}'
    {ask}/devices/elgato_lights:light:0/command -d '{dim}'

Events appear here, as the event stream sends them. Ctrl-C ends the demo.
"""


def _begin_showing(hub: Hub, greeting: str) -> None:
    _print_at_once(greeting)
    hub.bus.listen(_show)


def _show(event: Event) -> None:
    frame = frame_of(event)
    if frame is not None:
        _print_at_once(frame.decode())


def _print_at_once(text: str) -> None:
    """Print without waiting for the reader. End the demo if standard output has no reader."""
    try:
        check_reader()
        sys.stdout.write("".join(f"{visible(line)}\n" for line in text.split("\n")))  # a flush would wait
    except BrokenPipeError:
        discard(sys.stdout)
        _end()


def _end() -> None:
    signal.raise_signal(signal.SIGTERM)


def _choose_port() -> int:
    """Return the default port. If another program uses the default port, return a free port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, DEFAULT_PORT))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return 0
            raise
    return DEFAULT_PORT
