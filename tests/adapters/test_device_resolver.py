"""The allowed addresses of a device's name. The hub connects to the address that it has checked."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from typing import Any

import pytest

from appliance.adapters.device_http.client import HttpClient
from appliance.adapters.device_http.resolver import is_allowed_address
from appliance.adapters.device_http.session import DeviceSession
from appliance.clock import Clock
from appliance.errors import Unreachable
from tests.adapters.lua_kinds.vendor import Vendor
from tests.adapters.mqtt.broker import CERTIFICATE
from tests.fakes.rows import each_row

MEANINGS = (
    *(("lamp.lan", each, True) for each in ("192.168.1.20", "10.0.0.1", "172.16.0.1", "100.64.0.1", "93.184.216.34")),
    *(("lamp.local", each, True) for each in ("169.254.7.7", "fe80::1%2", "fd12::1", "2002:5db8:d822::")),
    ("v6only.example", "64:ff9b::5db8:d822", True),
    *(("localhost", each, True) for each in ("127.0.0.1", "::1", "127.0.0.53")),
    *((each, "127.0.0.1", True) for each in ("LocalHost.", "lamp.localhost", "lamp.localhost.")),
    *(("localhost", each, False) for each in ("192.168.1.20", "93.184.216.34", "fe80::1", "0.0.0.0")),
    *(("lamp.lan", each, False) for each in ("127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1", "::127.0.0.1")),
    *(("lamp.lan", each, False) for each in ("64:ff9b::7f00:1", "2002:7f00:1::", "::1%1")),
    *(("lamp.lan", each, False) for each in ("0.0.0.0", "0.1.2.3", "::", "::ffff:0:0", "255.255.255.255")),
    *(("lamp.lan", each, False) for each in ("224.0.0.251", "ff02::fb", "::ffff:224.0.0.1")),
    *(("lamp.lan", each, False) for each in ("169.254.169.254", "::ffff:a9fe:a9fe", "fd00:ec2::254")),
    ("localhost.example", "127.0.0.1", False),
    ("notlocalhost", "127.0.0.1", False),
    ("0x7f.1", "127.0.0.1", False),
)


@each_row(("name", "address", "is_right"), MEANINGS)
def test_a_name_never_resolves_to_this_machine(name: str, address: str, is_right: bool) -> None:
    assert is_allowed_address(name, address) is is_right


class TwoFaced:
    """A resolver that returns the lists of addresses one after another, and then always the last list."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def getaddrinfo(self, host: str, port: int, **_: Any) -> list[Any]:
        found = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        kinds = [(socket.AF_INET6 if ":" in each else socket.AF_INET, each) for each in found]
        return [
            (kind, socket.SOCK_STREAM, 6, "", (each, port, *((0, 0) if kind == socket.AF_INET6 else ())))
            for kind, each in kinds
        ]


@pytest.mark.parametrize(
    "answers",
    [
        (["127.0.0.1"],),
        (["127.255.0.1"], ["127.0.0.1"]),
        (["192.0.2.7", "127.0.0.1"],),
        (["::ffff:127.0.0.1"],),
        (["169.254.169.254"], ["127.0.0.1"]),
    ],
)
async def test_no_name_connects_to_this_machine(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[list[str], ...]
) -> None:
    network = TwoFaced(*answers)
    async with Vendor({"/x": {}}) as here, DeviceSession() as session:
        port = here.url.rpartition(":")[2]
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", network.getaddrinfo)
        http = HttpClient(session, f"http://lamp.example:{port}", Clock())
        for _ in range(3):
            with pytest.raises(Unreachable, match=r"its name resolves to .*, which is not allowed"):
                await http.exchange("GET", "/x")
            with pytest.raises(Unreachable, match="which is not allowed"):
                async with http.messages("/x", silence_secs=20):
                    pass
            with pytest.raises(Unreachable, match="which is not allowed"):
                async with http.events("/x", silence_secs=20):
                    pass
        assert here.requests == []


async def test_each_connection_uses_a_newly_checked_address(monkeypatch: pytest.MonkeyPatch) -> None:
    network = TwoFaced(["192.0.2.7"], ["127.0.0.1"])
    tried: list[Any] = []

    async def connect(opened: socket.socket, address: Any) -> None:
        tried.append(address[0])
        raise ConnectionRefusedError(111, "refused")

    async with DeviceSession() as session:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getaddrinfo", network.getaddrinfo)
        monkeypatch.setattr(loop, "sock_connect", connect)
        http = HttpClient(session, "http://lamp.example", Clock())
        with pytest.raises(Unreachable, match="connection refused"):
            await http.exchange("GET", "/x")
        assert (tried, network.asked) == (["192.0.2.7"], 1)
        session.fresh.connector.clear_dns_cache()  # type: ignore[union-attr]
        with pytest.raises(Unreachable, match=r"its name resolves to 127\.0\.0\.1"):
            await http.exchange("GET", "/x")
        assert (tried, network.asked) == (["192.0.2.7"], 2)


async def test_localhost_is_this_machine() -> None:
    async with Vendor({"/x": {}}) as here, DeviceSession() as session:
        http = HttpClient(session, here.url.replace("127.0.0.1", "localhost"), Clock())
        assert (await http.exchange("GET", "/x")).status == 200


USE_OF_CERTIFICATES = """
import asyncio
from types import SimpleNamespace
from appliance.imports import import_ahead

async def main():
    await import_ahead(["appliance.adapters.device_http.client"])
    from aiohttp import connector
    from appliance.adapters.device_http.connector import DeviceConnector
    before = connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509"]
    request = SimpleNamespace(is_ssl=lambda: True, ssl=True)
    print(before, DeviceConnector()._get_ssl_context(request).cert_store_stats()["x509"])

asyncio.run(main())
"""


def test_the_system_s_certificates_are_loaded_at_the_first_request_over_tls() -> None:
    environment = {**os.environ, "SSL_CERT_FILE": str(CERTIFICATE), "SSL_CERT_DIR": "/nowhere"}
    command = [sys.executable, "-c", USE_OF_CERTIFICATES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "0 1\n"
