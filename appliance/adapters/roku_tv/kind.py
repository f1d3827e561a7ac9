"""The kind `roku_tv`: settings and catalog entry."""

from __future__ import annotations

from appliance.adapters.access_settings import DEFAULT_POLL_SECS, max_silence_secs, poll_interval_secs
from appliance.adapters.kind import AdapterKind, DiscoveryMethod, host_keys
from appliance.home.model import DeviceKind
from appliance.tables import addresses
from appliance.tables.checks import whole
from appliance.tables.fields import Settings, key


class RokuTv(Settings, frozen=True, kw_only=True):
    """Settings of an enabled section."""

    ip_address: str = key(addresses.host)
    port: int = key(whole(1, 65535), 8060)
    poll_interval_secs: int = key(poll_interval_secs, DEFAULT_POLL_SECS)
    max_silence_secs: int | None = key(max_silence_secs, required=False)

    @property
    def base_url(self) -> str:
        return f"http://{addresses.bracketed(self.ip_address)}:{self.port}"


ROKU_TV = AdapterKind(
    name="roku_tv",
    title="Roku",
    settings=RokuTv,
    device_kinds=frozenset({DeviceKind.SWITCH}),
    operations=frozenset({"info"}),
    discovery=(DiscoveryMethod(ssdp="roku:ecp", keys=host_keys("ip_address", 8060)),),
    simulated=lambda device: RokuTv(ip_address=device.host, port=device.port, poll_interval_secs=2),
    in_demo="TV",
)
