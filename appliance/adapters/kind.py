"""What the other packages know of a kind of adapter, and the settings that several kinds share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from appliance.adapters.base import Adapter, AdapterContext
from appliance.home.model import DeviceKind
from appliance.tables import addresses
from appliance.tables.checks import whole
from appliance.tables.fields import key


class Vendor(Protocol):
    """A simulated device that listens while entered, as `adapters/simulated.py` makes them."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """Its base URL, known once entered."""

    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSimulation:
    """How a kind's device is simulated. `device` makes the simulator, and imports it.

    `settings` are those of a section for that device, once it is entered. `in_demo` is its name in the demo; without
    one the demo has no such device.
    """

    device: Callable[[], Vendor]
    settings: Callable[[Vendor], Any]
    in_demo: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterKind:
    """One kind of adapter.

    `settings` is the dataclass whose objects hold what its sections state beside `type` and `enabled`; each of its
    fields is a `tables.fields.key`. `build` makes an adapter of one. `device_kinds` are the kinds of device that it
    may publish: of what is stored, no other is restored as its own. `late` names the modules that `build` imports:
    where a section is enabled, the hub imports them on a thread once it answers. `simulation` stands in for the
    vendor's device, where there is one.
    """

    name: str
    settings: type[Any]
    device_kinds: frozenset[DeviceKind]
    build: Callable[[Any, AdapterContext], Adapter]
    late: Sequence[str] = ()
    simulation: KindSimulation | None = None


def poll_interval() -> Any:
    """The key `poll_interval_secs` of a kind that polls."""
    return key(whole(1, 86_400), 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledUrl:
    """An enabled section of a kind that polls the URL of one device, every so many seconds."""

    base_url: str = key(addresses.base_url)
    poll_interval_secs: int = poll_interval()


def http_client(base_url: str, context: AdapterContext) -> Any:
    """The HTTP client of an adapter. Its module is imported only here, where a section asks for it."""
    from appliance.adapters.http import HttpClient

    return HttpClient(context.session, base_url, context.clock)
