"""The blocks of a Markdown page, and a home in which they run."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from appliance.adapters.elgato_lights.simulator import LightSimulator
from tests.fakes.process import KEY, ROOT, Process, running
from tests.fakes.programs import need

DOCS = ROOT / "docs"
PATIENCE_SECS = 60

WEBSOCAT = """#!{python}
# Stands for websocat: prints what a WebSocket sends.
import asyncio, sys, aiohttp
async def main():
    _, flag, header, url = sys.argv
    assert flag == "-H"
    name, _, value = header.partition(": ")
    async with aiohttp.ClientSession() as session, session.ws_connect(url, headers={{name: value}}) as socket:
        print("connected", file=sys.stderr, flush=True)
        async for message in socket:
            print(message.data, flush=True)
asyncio.run(main())
"""


def blocks(page: str) -> list[tuple[str, str]]:
    """Return the language and the text of each block, in the order of the page."""
    return re.findall(r"^```(\w+)\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)


@dataclass(kw_only=True)
class Home:
    """A folder with a configuration, a running hub, and a shell."""

    folder: Path
    hub: Process
    light: LightSimulator

    async def run(self, *command: str) -> str:
        """Return the output of the command, which must succeed."""
        tools = self.folder.parent / "bin"
        hub = {"HUB": self.hub.url, "KEY": KEY, "PYTHONPATH": str(ROOT), "TZ": "UTC"}
        environment = {**os.environ, **hub, "PATH": f"{tools}:{os.environ['PATH']}"}
        process = await asyncio.create_subprocess_exec(
            *command, cwd=self.folder, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(PATIENCE_SECS):
            out, err = await process.communicate()
        assert process.returncode == 0, (command, out.decode(), err.decode())
        return out.decode()

    async def shell(self, text: str) -> str:
        """Run a block of commands, and return the output. In the test, the hub has another port than on the page."""
        if "curl " in text:
            need("curl")
        here = text.replace("http://127.0.0.1:3000", self.hub.url)
        here = here.replace("ws://127.0.0.1:3000", self.hub.url.replace("http", "ws"))
        return await self.run("bash", "-euo", "pipefail", "-c", here)


@asynccontextmanager
async def open_home(folder: Path, sections: str = "") -> AsyncIterator[Home]:
    """Run a home with one light, and with these sections of the configuration."""
    home = folder / "home"
    make_tools(folder / "bin")
    (home / "config").mkdir(parents=True)
    async with LightSimulator() as light:
        section = f'[adapters.elgato_lights]\nbase_url = "{light.url}"\npoll_interval_secs = 1\n'
        (home / "config" / "default.toml").write_text(f'[api]\nbind_address = "127.0.0.1:0"\n{section}{sections}')
        await _init(home)
        async with running(home) as hub:
            await hub.ready()
            yield Home(folder=home, hub=hub, light=light)


def make_tools(folder: Path) -> None:
    """Write `lares` and `websocat`, the programs that the documentation pages run, to this folder."""
    folder.mkdir()
    _write(folder / "lares", f'#!/bin/sh\nexec {sys.executable} -m appliance "$@"\n')
    _write(folder / "websocat", WEBSOCAT.format(python=sys.executable))


async def _init(home: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "appliance", "init", str(home)), env=environment, stdout=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0


def _write(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o755)


def plain(text: str) -> list[str]:
    """Return the lines of an output without times and numbers."""
    timeless = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "TIME", text)
    return [re.sub(r"\d+", "N", line).rstrip() for line in timeless.splitlines() if line.strip()]
