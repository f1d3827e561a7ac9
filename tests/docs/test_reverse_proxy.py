"""docs/reverse-proxy.md: Caddy and nginx, started with the page's configurations, forward requests and events."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest

from tests.adapters.mqtt.broker import CERTIFICATE, KEY
from tests.docs.pages import DOCS
from tests.fakes.app import LIGHT, MASTER, open_app
from tests.fakes.process import free_port
from tests.fakes.programs import need

NAME = "lares.home.arpa"
GLOBAL = """{{
	admin off
	https_port {port}
	auto_https disable_redirects
	skip_install_trust
	storage file_system {folder}/storage
}}
"""
AROUND = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  include {folder}/lares.conf;
}}
"""


def caddy(folder: Path, hub: str, port: int) -> list[str]:
    """Return the command that starts Caddy with the page's file."""
    shown = (DOCS / "proxy" / "Caddyfile").read_text().replace("127.0.0.1:3000", hub)
    (folder / "Caddyfile").write_text(GLOBAL.format(port=port, folder=folder) + shown)
    return ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


def nginx(folder: Path, hub: str, port: int) -> list[str]:
    """Return the command that starts nginx with the page's file, and with the tests' certificate."""
    shutil.copy(KEY, folder / "lares.key")
    shutil.copy(CERTIFICATE, folder / "lares.pem")
    shown = (DOCS / "proxy" / "nginx.conf").read_text().replace("127.0.0.1:3000", hub)
    shown = shown.replace("listen 443", f"listen 127.0.0.1:{port}").replace("/etc/ssl/", f"{folder}/")
    (folder / "lares.conf").write_text(shown)
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder))
    return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]


@asynccontextmanager
async def started(command: list[str], folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the proxy, and stop it by its process id."""
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "proxy.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("proxy", [caddy, nginx], ids=["caddy", "nginx"])
async def test_requests_and_events_come_through(proxy: object, tmp_path: Path) -> None:
    program = "caddy" if proxy is caddy else "nginx"
    path = need(program)
    async with open_app() as app:
        for _ in range(5):  # the proxy ends if another process takes the port first
            port = free_port()
            command = (caddy if proxy is caddy else nginx)(tmp_path, app.url.removeprefix("http://"), port)
            async with started([path, *command[1:]], tmp_path) as process:
                if await _is_passed_on(port, process):
                    return
    pytest.fail((tmp_path / "proxy.log").read_text()[-2000:])


async def _is_passed_on(port: int, process: asyncio.subprocess.Process) -> bool:
    """Return whether the proxy at the port forwards requests and events. Return False if the proxy has ended."""
    anyone = ssl.create_default_context()
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {MASTER}", "Host": NAME}
    url = f"https://127.0.0.1:{port}"
    async with aiohttp.ClientSession(headers=headers) as session, asyncio.timeout(30):
        while True:
            if process.returncode is not None:
                return False
            try:
                async with session.get(
                    f"{url}/devices", ssl=anyone, server_hostname=NAME, timeout=aiohttp.ClientTimeout(5)
                ) as response:
                    assert response.status == 200 and len(await response.json()) == 2
                break
            except (aiohttp.ClientError, TimeoutError):
                await asyncio.sleep(0.1)
        async with session.ws_connect(f"{url}/events", ssl=anyone, server_hostname=NAME) as events:
            command = {"capability": "brightness", "action": "set", "value": 77}
            async with session.post(
                f"{url}/devices/{LIGHT}/command", json=command, ssl=anyone, server_hostname=NAME
            ) as response:
                assert response.status == 200
            assert (await events.receive_json())["state"]["brightness"] == 77
    return True
