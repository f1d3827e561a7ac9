"""What the rest of the house knows of a kind of adapter, and the settings that many share."""

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
    """A vendor's device on this machine, listening while entered, as `adapters/simulated.py` makes them."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The base of its addresses, known once entered."""

    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSimulation:
    """How a kind's device is simulated. `device` makes the simulator; a hub that simulates nothing never imports it.

    `settings` are those of a section for that device, once it is entered. In the demo it bears the name `in_demo`;
    without that the demo has none.
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
