"""The kind `mqtt`: its settings, and the adapter that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from appliance.adapters.base import Adapter, AdapterContext, Secrets
from appliance.adapters.kind import AdapterKind
from appliance.adapters.mqtt.hub_access import HomeAccess
from appliance.adapters.mqtt.mqtt_settings import Mqtt
from appliance.clock import Clock
from appliance.home.model import DeviceKind


def build(settings: Mqtt, context: AdapterContext) -> Adapter:
    """The adapter of a section. The MQTT library is imported only here, where a section asks for it."""
    from appliance.adapters.mqtt.adapter import MqttAdapter

    return MqttAdapter(context, settings)


MQTT = AdapterKind(
    name="mqtt",
    settings=Mqtt,
    device_kinds=frozenset({DeviceKind.LIGHT, DeviceKind.SWITCH, DeviceKind.SENSOR}),
    build=build,
    late=("appliance.adapters.mqtt.adapter",),
)


async def open_outlets(
    adapters: Mapping[str, Any], secrets_of: Callable[[str], Secrets], home: HomeAccess, clock: Clock, root: Path
) -> list[AbstractAsyncContextManager[Any]]:
    """An outlet for each section with `publish = true`; each publishes the home while it is entered.

    Raises `StoreFailed` where the number of this run cannot be stored.
    """
    brokers = {name: settings for name, settings in adapters.items() if isinstance(settings, Mqtt)}
    outlets: list[AbstractAsyncContextManager[Any]] = []
    for name, settings in brokers.items():
        if settings.publish:
            from appliance.adapters.mqtt.identity import hub_id_of, next_boot
            from appliance.adapters.mqtt.out.outlet import Outlet

            secrets = secrets_of(name)
            hub_id, boot = await hub_id_of(settings, secrets), await next_boot(secrets, clock)
            outlets.append(Outlet(settings.located(root), hub_id, boot, home, clock, frozenset(brokers)))
    return outlets
