"""Finds devices of known kinds in the local network, and returns the TOML section of each device."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, count

from msgspec import Struct
from msgspec.structs import replace

from appliance.adapters.kind import DiscoveryMethod, https_url
from appliance.adapters.kinds import KINDS
from appliance.adapters.network_search.mdns import Instance
from appliance.adapters.network_search.scan import Scan, SearchNetwork, local_network
from appliance.adapters.network_search.ssdp import SsdpAnswer
from appliance.clock import Clock
from appliance.home.texts import MAX_NAME_CHARS, clean_text

DISCOVERY_METHODS: Sequence[DiscoveryMethod] = (
    *(replace(each, kind=kind.name, title=kind.title) for kind in KINDS.values() for each in kind.discovery),
    DiscoveryMethod(kind="shelly", title="Shelly", mdns="_shelly._tcp", serial=("id", "mac")),
    DiscoveryMethod(kind="shelly", title="Shelly", mdns="_http._tcp", prefix="shelly", serial=("id", "mac")),
    DiscoveryMethod(kind="hue", title="Hue bridge", mdns="_hue._tcp", keys=https_url, serial=("bridgeid",)),
    DiscoveryMethod(kind="homewizard", title="HomeWizard", mdns="_hwenergy._tcp", serial=("serial",)),
    DiscoveryMethod(
        kind="homewizard", title="HomeWizard", mdns="_homewizard._tcp", keys=https_url, serial=("serial",)
    ),
    DiscoveryMethod(kind="sonos", title="Sonos", ssdp="urn:schemas-upnp-org:device:ZonePlayer:1"),
)
"""Discovery methods of the kinds in Python and of the bundled kinds in Lua. A running hub uses the methods of its own
kinds instead."""

DEFAULT_SEARCH_SECS, MAX_SEARCH_SECS = 3, 30
"""The default and the maximum duration of a search, in seconds."""

MAX_FOUND = 256

_NOT_IN_SECTION = re.compile(r"[^a-z0-9]+")
MAX_SECTION_CHARS = 40


class Found(Struct, frozen=True, kw_only=True):
    """A found device: kind, name, `host:port`, serial number if known, and the TOML section to paste."""

    kind: str
    name: str
    address: str
    serial: str | None
    section: str


class Discovery:
    """Searches the network on request. Requests that arrive during a search get the result of this search.

    `kinds` returns the kinds of the hub. `sections` returns the names of the configured sections. Discovery does not
    connect to the devices it finds.
    """

    def __init__(
        self,
        clock: Clock,
        kinds: Callable[[], Collection[str]],
        sections: Callable[[], Collection[str]],
        network: Callable[[], SearchNetwork] = local_network,
    ) -> None:
        self._clock = clock
        self._kinds = kinds
        self._sections = sections
        self._network = network
        self._lock = asyncio.Lock()
        self._latest: list[Found] | None = None

    async def search(self, seconds: float = DEFAULT_SEARCH_SECS) -> list[Found]:
        """Return the devices found within `seconds`, sorted by kind, name, and address."""
        is_first = not self._lock.locked()
        async with self._lock:
            if is_first:
                self._latest = None
            if self._latest is None:
                self._latest = await self._search(seconds)
            return self._latest

    async def _search(self, seconds: float) -> list[Found]:
        kinds = self._kinds()
        ways = [each for each in DISCOVERY_METHODS if each.kind in kinds]
        services = [each.mdns for each in ways if each.mdns is not None]
        targets = [each.ssdp for each in ways if each.ssdp is not None]
        scan = Scan(self._network(), services, targets, self._clock)
        await scan.run(seconds)
        sections = self._sections()
        return await asyncio.to_thread(lambda: list_found(ways, scan.mdns.list_instances(), scan.ssdp, sections))


def list_found(
    ways: Iterable[DiscoveryMethod],
    instances: Iterable[Instance],
    answers: Iterable[SsdpAnswer],
    sections: Collection[str] = (),
) -> list[Found]:
    """Return at most `MAX_FOUND` devices from these answers. If a device has answered in several ways, list it only
    once, with the first of its ways."""
    seen: dict[tuple[str, str, int], tuple[DiscoveryMethod, str, str, int, str | None]] = {}
    serials: dict[tuple[str, str, str], int] = {}
    for way in ways:
        for name, host, port, serial in (*_of_mdns(way, instances), *_of_ssdp(way, answers)):
            if serial is None or serials.setdefault((way.kind, host, serial), port) == port:
                seen.setdefault((way.kind, host, port), (way, name, host, port, serial))
    taken, found = set(sections), []
    in_order = sorted(seen.values(), key=lambda each: (each[0].kind, each[1], each[2]))
    for way, name, host, port, serial in in_order[:MAX_FOUND]:
        section = _free_name(way.kind, name, taken)
        taken.add(section)
        text = _section(section, way, host, port)
        found.append(Found(kind=way.kind, name=name, address=f"{host}:{port}", serial=serial, section=text))
    return found


_Device = tuple[str, str, int, str | None]
"""Name, host, port, and serial number of a device."""


def _of_mdns(way: DiscoveryMethod, instances: Iterable[Instance]) -> Iterator[_Device]:
    for each in instances:
        if each.service == way.mdns and each.name.lower().startswith(way.prefix):
            serial = next((each.text[key] for key in way.serial if each.text.get(key)), None)
            yield _clean(each.name) or way.title, each.host, each.port, _clean(serial)


def _of_ssdp(way: DiscoveryMethod, answers: Iterable[SsdpAnswer]) -> Iterator[_Device]:
    for each in answers:
        if each.target == way.ssdp:
            serial = _clean(each.usn.partition("::")[0].rpartition(":")[2])
            yield f"{way.title} {serial}" if serial else way.title, each.host, each.port, serial


def _clean(text: str | None) -> str | None:
    return None if text is None else clean_text(text, MAX_NAME_CHARS)


def _free_name(kind: str, name: str, taken: Collection[str]) -> str:
    """Return an unused section name: the kind's name, followed by the device's name or a number if necessary."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    word = _NOT_IN_SECTION.sub("_", plain).strip("_")[:MAX_SECTION_CHARS]
    is_alike = word.partition("_")[0] == kind.partition("_")[0]
    base = word if is_alike else f"{kind}_{word}" if word else kind
    numbered = (f"{base}_{number}" for number in count(2))
    return next(each for each in chain((kind, base), numbered) if each not in taken)


def _section(name: str, way: DiscoveryMethod, host: str, port: int) -> str:
    keys = {**({} if name == way.kind else {"type": way.kind}), **way.keys(host, port)}
    lines = [f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in keys.items()]
    return "\n".join((f"[adapters.{name}]", *lines, ""))
