"""The id of this hub on brokers, and the number of its run."""

from __future__ import annotations

import secrets as randomness
from contextlib import suppress
from datetime import UTC, datetime

from appliance.adapters.base import Secrets
from appliance.adapters.mqtt.mqtt_settings import Mqtt
from appliance.clock import Clock


async def hub_id_of(settings: Mqtt, secrets: Secrets) -> str:
    """The configured `hub_id`, else one that is made once and stored. Raises `StoreFailed`."""
    if settings.hub_id is not None:
        return settings.hub_id
    if (kept := secrets.get("hub_id")) is not None:
        return kept
    made = randomness.token_hex(4)
    await secrets.put("hub_id", made)
    return made


async def client_id_of(name: str, secrets: Secrets) -> str:
    """The client id of a section on its broker: made once for a data directory, and never part of a backup.

    So two hubs that were restored from one backup do not throw each other out. Raises `StoreFailed`.
    """
    if (kept := secrets.get("client_id")) is not None:
        return kept
    made = f"lares-{name[:40]}-{randomness.token_hex(6)}"
    await secrets.put("client_id", made)
    return made


async def next_boot(secrets: Secrets, clock: Clock) -> int:
    """A number for this run, higher than every one before, even if the clock went back. Raises `StoreFailed`."""
    kept = secrets.get("boot")
    last = int(kept) if kept is not None and kept.isdigit() else 0
    boot = max(last + 1, int(clock.now().timestamp() * 1000))
    await secrets.put("boot", str(boot))
    return boot


async def keep_stop(secrets: Secrets, clock: Clock) -> None:
    """Store that this run ends now. Raises `StoreFailed`."""
    await secrets.put("stopped_at", str(clock.now().timestamp()))


def stopped_at(secrets: Secrets) -> datetime | None:
    """When the last run ended that was stopped in order; None where that is not known."""
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(float(secrets.get("stopped_at") or ""), UTC)
    return None
