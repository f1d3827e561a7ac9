"""The texts that a section stores across restarts: its ids on the broker, the run number, the stop time, and the
published topics."""

from __future__ import annotations

import secrets as randomness
from contextlib import suppress
from datetime import UTC, datetime

import orjson

from appliance.adapters.base import Secrets
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.out.topics import HubTopics
from appliance.clock import Clock


async def hub_id_of(settings: Mqtt, secrets: Secrets) -> str:
    """Return the configured `hub_id`, or the stored id, which is created at the first start. Raise `StoreFailed`."""
    return settings.hub_id or await _kept_or_made(secrets, "hub_id", randomness.token_hex(4))


async def client_id_of(name: str, secrets: Secrets) -> str:
    """Return the section's client id, which is created once per data directory and is never part of a backup.

    If backups contained the id, two hubs restored from one backup would disconnect each other. Raise `StoreFailed`.
    """
    return await _kept_or_made(secrets, "client_id", f"lares-{name[:40]}-{randomness.token_hex(6)}")


async def _kept_or_made(secrets: Secrets, key: str, made: str) -> str:
    if (kept := secrets.get(key)) is not None:
        return kept
    await secrets.put(key, made)
    return made


async def next_boot(secrets: Secrets, clock: Clock) -> int:
    """Return a number that is higher than in all earlier runs. Raise `StoreFailed`."""
    kept = secrets.get("boot")
    last = int(kept) if kept is not None and kept.isdigit() else 0
    boot = max(last + 1, int(clock.now().timestamp() * 1000))
    await secrets.put("boot", str(boot))
    return boot


async def keep_stop(secrets: Secrets, clock: Clock) -> None:
    """Store the current time as the stop time. Raise `StoreFailed`."""
    await secrets.put("stopped_at", str(clock.now().timestamp()))


def stopped_at(secrets: Secrets) -> datetime | None:
    """Return the time of the last orderly stop, or None if it is unknown."""
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(float(secrets.get("stopped_at") or ""), UTC)
    return None


def published_topics(secrets: Secrets) -> HubTopics | None:
    """Return the topics that may still contain retained messages of an earlier run. Return None if all these topics
    are cleared."""
    kept = secrets.get("published")
    hub_id, prefix = orjson.loads(kept) if kept else ("", "")
    return HubTopics(hub_id, prefix) if hub_id else None


async def keep_published(secrets: Secrets, topics: HubTopics | None) -> None:
    """Store the topics to which the hub publishes. None means that the hub no longer publishes. Raise
    `StoreFailed`."""
    if published_topics(secrets) != topics:
        await secrets.put(
            "published", "" if topics is None else orjson.dumps([topics.hub_id, topics.prefix]).decode()
        )
