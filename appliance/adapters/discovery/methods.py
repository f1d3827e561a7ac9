"""Methods: by which service of mDNS or target of SSDP the devices of each kind are found, one row each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

SectionKeys = Mapping[str, str | int]
"""SectionKeys of a section beside `type`, with their values."""


def _url(host: str, port: int, scheme: str = "http") -> SectionKeys:
    default = {"http": 80, "https": 443}[scheme]
    return {"base_url": f"{scheme}://{host}" if port == default else f"{scheme}://{host}:{port}"}


def _secure_url(host: str, port: int) -> SectionKeys:
    return _url(host, port, "https")


def _roku(host: str, port: int) -> SectionKeys:
    return {"ip_address": host, **({} if port == 8060 else {"port": port})}


def _broker(host: str, port: int) -> SectionKeys:
    return {"host": host, **({} if port == 1883 else {"port": port})}


class DiscoveryMethod(Struct, frozen=True, kw_only=True):
    """One way in which devices of a kind are found.

    `mdns` is a service, of which only instances count whose names begin with `prefix`; or `ssdp` is a target.
    `serial` are the keys of the TXT record that may hold the serial number, in order. `keys` makes what the section
    states of host and port.
    """

    kind: str
    title: str
    keys: Callable[[str, int], SectionKeys] = _url
    mdns: str | None = None
    prefix: str = ""
    ssdp: str | None = None
    serial: Sequence[str] = ()


DISCOVERY_METHODS: Sequence[DiscoveryMethod] = (
    DiscoveryMethod(kind="elgato_lights", title="Elgato light", mdns="_elg._tcp", serial=("id",)),
    DiscoveryMethod(kind="wled", title="WLED", mdns="_wled._tcp", serial=("mac",)),
    DiscoveryMethod(kind="roku_tv", title="Roku", ssdp="roku:ecp", keys=_roku),
    DiscoveryMethod(kind="mqtt", title="MQTT broker", mdns="_mqtt._tcp", keys=_broker),
    DiscoveryMethod(kind="shelly", title="Shelly", mdns="_shelly._tcp", serial=("id", "mac")),
    DiscoveryMethod(kind="shelly", title="Shelly", mdns="_http._tcp", prefix="shelly", serial=("id", "mac")),
    DiscoveryMethod(kind="hue", title="Hue bridge", mdns="_hue._tcp", keys=_secure_url, serial=("bridgeid",)),
    DiscoveryMethod(kind="homewizard", title="HomeWizard", mdns="_hwenergy._tcp", serial=("serial",)),
    DiscoveryMethod(kind="sonos", title="Sonos", ssdp="urn:schemas-upnp-org:device:ZonePlayer:1"),
)
"""Every way; of kinds that a hub does not have, nothing is searched or shown."""
