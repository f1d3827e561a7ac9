"""What this hub is called on a broker, and which of its runs this is."""

from __future__ import annotations

import secrets as randomness

from appliance.adapters.base import Secrets
from appliance.adapters.mqtt.mqtt_settings import Mqtt
from appliance.clock import Clock


async def hub_id_of(settings: Mqtt, secrets: Secrets) -> str:
    """The configured name of this hub, else one that is made once and kept. Raises `StoreFailed`."""
    if settings.hub_id is not None:
        return settings.hub_id
    if (kept := secrets.get("hub_id")) is not None:
        return kept
    made = randomness.token_hex(4)
    await secrets.put("hub_id", made)
    return made


async def next_boot(secrets: Secrets, clock: Clock) -> int:
    """A number for this run, higher than that of every run before, whatever was done to the clock."""
    kept = secrets.get("boot")
    last = int(kept) if kept is not None and kept.isdigit() else 0
    boot = max(last + 1, int(clock.now().timestamp() * 1000))
    await secrets.put("boot", str(boot))
    return boot
