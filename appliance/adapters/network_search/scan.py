"""Sends questions by mDNS and SSDP for some seconds, and collects the answers within limits."""

from __future__ import annotations

import array
import asyncio
import fcntl
import ipaddress
import socket
import struct
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from msgspec import Struct

from appliance.adapters.network_search.dns_messages import Malformed, decode_answer, encode_query
from appliance.adapters.network_search.mdns import MdnsAnswers, is_local
from appliance.adapters.network_search.ssdp import SSDP_GROUP, SsdpAnswer, decode_ssdp, encode_search
from appliance.clock import Clock

MAX_PACKETS, MAX_PACKETS_PER_SENDER = 2000, 64
"""Maximum number of packets that are read in one scan. Further packets are discarded."""

MAX_PACKET_BYTES = 9000
"""Size limit of a packet. Longer packets are truncated."""

MAX_SSDP_ANSWERS = 256

PACKETS_PER_TURN = 4
"""Maximum number of packets that are read in one iteration of the event loop."""

ASKED_AFTER_SECS = (0.0, 0.3, 0.6, 1.2)
"""After this number of seconds, the questions are sent again, because packets can be lost."""

MAX_INTERFACES = 32

_SIOCGIFCONF, _ENTRY_BYTES = 0x8912, 40
"""The ioctl request that lists network interfaces (netdevice(7)), and the size of an entry on 64-bit machines."""

_MDNS_TTL, _SSDP_TTL = 255, 1


class SearchNetwork(Struct, frozen=True, kw_only=True):
    """The interfaces on which questions are sent, and the multicast groups of mDNS and SSDP.

    An empty address selects the interface of the default route.
    """

    mdns: tuple[str, int] = ("224.0.0.251", 5353)
    ssdp: tuple[str, int] = SSDP_GROUP
    interfaces: Sequence[str] = ("",)


def local_network() -> SearchNetwork:
    """Return all interfaces of this machine that have an IPv4 address, except loopback."""
    with suppress(OSError):
        found = [each for each in _list_addresses() if not ipaddress.IPv4Address(each).is_loopback]
        return SearchNetwork(interfaces=found or ("",))
    return SearchNetwork()


def _list_addresses() -> list[str]:
    """Return the IPv4 addresses of the interfaces. Netlink is not used, because the hub's systemd unit forbids it."""
    buffer = array.array("B", bytes(MAX_INTERFACES * _ENTRY_BYTES))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("iL", len(buffer), buffer.buffer_info()[0])
        [size, _] = struct.unpack("iL", fcntl.ioctl(any_socket, _SIOCGIFCONF, asked))
    return [socket.inet_ntoa(buffer[at + 20 : at + 24].tobytes()) for at in range(0, size, _ENTRY_BYTES)]


class Scan:
    """One scan for these mDNS services and SSDP targets. `run` fills `mdns` and `ssdp`."""

    def __init__(self, network: SearchNetwork, services: Sequence[str], targets: Sequence[str], clock: Clock) -> None:
        self.mdns = MdnsAnswers(services)
        self.ssdp: list[SsdpAnswer] = []
        self.packets = 0
        self._network = network
        self._targets = targets
        self._clock = clock
        self._senders: Counter[str] = Counter()

    async def run(self, seconds: float) -> None:
        """Send the questions, and listen for `seconds`. Do nothing if no socket can be opened."""
        with ExitStack() as stack:
            sockets = [each for address in self._network.interfaces if (each := _open(address, stack)) is not None]
            if not sockets:
                return
            loop = asyncio.get_running_loop()
            for each in sockets:
                loop.add_reader(each, self._read, each)
                stack.callback(loop.remove_reader, each)
            begun = 0.0
            for at in (*(each for each in ASKED_AFTER_SECS if each < seconds), seconds):
                await self._clock.sleep(at - begun)
                begun = at
                if at < seconds:
                    self._ask(sockets)

    def _ask(self, sockets: Sequence[socket.socket]) -> None:
        query = encode_query(self.mdns.questions())
        for each in sockets:
            _send(each, query, self._network.mdns, _MDNS_TTL)
            for target in self._targets:
                _send(each, encode_search(target), self._network.ssdp, _SSDP_TTL)

    def _read(self, receiver: socket.socket) -> None:
        for _ in range(PACKETS_PER_TURN):
            try:
                packet, (sender, _port) = receiver.recvfrom(MAX_PACKET_BYTES)
            except OSError:
                return
            if self.packets >= MAX_PACKETS or self._senders[sender] >= MAX_PACKETS_PER_SENDER or not is_local(sender):
                continue
            self.packets += 1
            self._senders[sender] += 1
            self._take(packet, sender)

    def _take(self, packet: bytes, sender: str) -> None:
        if packet.startswith(b"HTTP/"):
            answer = decode_ssdp(packet, sender)
            if answer is not None and answer not in self.ssdp and len(self.ssdp) < MAX_SSDP_ANSWERS:
                self.ssdp.append(answer)
            return
        with suppress(Malformed):
            self.mdns.add(decode_answer(packet), sender)


def _open(interface: str, stack: ExitStack) -> socket.socket | None:
    """Open a socket that sends to multicast groups on this interface. Return None if the system refuses the
    socket."""
    try:
        opened = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        opened.setblocking(False)
        if interface:
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
        opened.bind(("", 0))
    except OSError:
        return None
    return opened


def _send(sender: socket.socket, message: bytes, to: tuple[str, int], ttl: int) -> None:
    with suppress(OSError):
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
        sender.sendto(message, to)
