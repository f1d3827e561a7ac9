"""The catalog entry of an adapter kind, and settings that several kinds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import TracebackType
from typing import Any, Protocol

from msgspec import Struct

from appliance.adapters.access_settings import DEFAULT_POLL_SECS, max_silence_secs, poll_interval_secs
from appliance.adapters.base import Adapter, AdapterContext
from appliance.home.model import DeviceKind
from appliance.tables import addresses
from appliance.tables.fields import Settings, key

SectionKeys = Mapping[str, str | int]
"""The keys of a section with their values, except the key `type`."""


def http_url(host: str, port: int, scheme: str = "http") -> SectionKeys:
    """Return the setting `base_url`. The URL does not contain the scheme's default port."""
    return {
        "base_url": f"{scheme}://{host}" if port == addresses.DEFAULT_PORTS[scheme] else f"{scheme}://{host}:{port}"
    }


def host_keys(name: str, usual_port: int) -> Callable[[str, int], SectionKeys]:
    """Return a function for the settings `name` and `port`. The usual port is omitted."""
    return lambda host, port: {name: host} if port == usual_port else {name: host, "port": port}


def https_url(host: str, port: int) -> SectionKeys:
    return http_url(host, port, "https")


class DiscoveryMethod(Struct, frozen=True, kw_only=True):
    """One way to find devices of a kind in the network. In an `AdapterKind`, omit `kind` and `title`.

    `mdns` is the name of a service. Only service instances whose names begin with `prefix` match. If `mdns` is None,
    `ssdp` is the search target. `serial` lists the TXT record keys that can hold the serial number. `keys` returns
    the section's keys for a host and a port.
    """

    kind: str = ""
    title: str = ""
    keys: Callable[[str, int], SectionKeys] = http_url
    mdns: str | None = None
    prefix: str = ""
    ssdp: str | None = None
    serial: Sequence[str] = ()


class Vendor(Protocol):
    """A simulated device, which serves requests inside its `async with` block. See `adapters/simulated_device.py`."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The base URL, which is known once the simulated device's context is open."""

    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class AdapterKind(Struct, frozen=True, kw_only=True):
    """One adapter kind, in the folder of the same name. `title` is the kind's name for people.

    `settings` is the class for a section's values, except `type` and `enabled`. `device_kinds` are the possible kinds
    of devices. Stored devices of other kinds are not restored. For a kind with a simulator, `simulated` returns the
    settings of a section. `in_demo` is the section's name in the demo, or None if the demo does not include the kind.
    `operations` contains the names of operations, or is None if the operations differ between sections. `discovery`
    lists the ways to find devices.

    The folder's `adapter.py` has `build(settings, context)`. The folder's `simulator.py` has `simulate()`.
    `adapter.py` and `simulator.py` are imported on first use. The adapter of an enabled section is imported on a
    thread, once the hub answers requests. If `has_probe` is true, `probe.py` has `probe(settings)` for `lares
    doctor`. `warn` returns the key of a risky or unusual setting, and a warning.
    """

    name: str
    settings: type[Settings]
    device_kinds: frozenset[DeviceKind]
    title: str = ""
    simulated: Callable[[Vendor], Any] | None = None
    in_demo: str | None = None
    operations: frozenset[str] | None = frozenset()
    discovery: tuple[DiscoveryMethod, ...] = ()
    has_probe: bool = False
    warn: Callable[[Any], tuple[str, str] | None] = lambda _: None

    @property
    def adapter_module(self) -> str:
        return f"appliance.adapters.{self.name}.adapter"

    def build(self, settings: Any, context: AdapterContext) -> Adapter:
        adapter: Adapter = import_module(self.adapter_module).build(settings, context)
        return adapter

    def probe(self, settings: Any) -> tuple[bool, str]:
        """Return two values: whether the address of a section answers, and a message. The call blocks. `has_probe`
        must be true."""
        found: tuple[bool, str] = import_module(f"appliance.adapters.{self.name}.probe").probe(settings)
        return found

    def simulate(self) -> Vendor:
        """Return a simulated device whose context is not open yet. `simulated` must be set."""
        device: Vendor = import_module(f"appliance.adapters.{self.name}.simulator").simulate()
        return device


class PolledUrl(Settings, frozen=True, kw_only=True):
    """Settings of a kind that polls one URL every `poll_interval_secs`."""

    base_url: str = key(addresses.base_url)
    poll_interval_secs: int = key(poll_interval_secs, DEFAULT_POLL_SECS)
    max_silence_secs: int | None = key(max_silence_secs, required=False)
