"""The kind `mqtt`: its row in the table of kinds, and the outlets of its sections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from appliance.adapters.base import Secrets
from appliance.adapters.kind import AdapterKind
from appliance.adapters.mqtt.mqtt_settings import Mqtt
from appliance.adapters.mqtt.out.out_topics import HomeAccess
from appliance.clock import Clock
from appliance.home.model import DeviceKind

MQTT = AdapterKind(
    name="mqtt",
    settings=Mqtt,
    device_kinds=frozenset({DeviceKind.LIGHT, DeviceKind.SWITCH, DeviceKind.SENSOR}),
    operations=frozenset({"publish", "notify"}),
)


async def open_outlets(
    adapters: Mapping[str, Any], secrets_of: Callable[[str], Secrets], home: HomeAccess, clock: Clock, root: Path
) -> list[AbstractAsyncContextManager[Any]]:
    """An outlet for each section with `publish = true`; each publishes the home while it is entered.

    Where a section published before, and does not now or at other topics, that is taken back.

    Raises `StoreFailed` where the number of this run cannot be stored.
    """
    brokers = {name: settings for name, settings in adapters.items() if isinstance(settings, Mqtt)}
    outlets: list[AbstractAsyncContextManager[Any]] = []
    for name, settings in brokers.items():
        secrets = secrets_of(name)
        if settings.publish or secrets.get("published"):
            from appliance.adapters.mqtt.mqtt_settings import client_id_of, hub_id_of, next_boot
            from appliance.adapters.mqtt.out.out_topics import HubTopics
            from appliance.adapters.mqtt.out.outlet import Outlet
            from appliance.adapters.mqtt.out.withdrawal import keep_published, published_topics, withdrawal

            hub_id, located = await hub_id_of(settings, secrets), settings.located(root)
            client_id = await client_id_of(name, secrets)
            now = HubTopics(hub_id, settings.discovery_prefix) if settings.publish else None
            before = published_topics(secrets)
            if before is not None and before != now:
                outlets.append(withdrawal(located, before, now, secrets, clock, f"{client_id}-back"))
            if settings.publish:
                await keep_published(secrets, before or now)
                boot = await next_boot(secrets, clock)
                outlets.append(Outlet(located, hub_id, boot, home, clock, frozenset(brokers), f"{client_id}-out"))
    return outlets
