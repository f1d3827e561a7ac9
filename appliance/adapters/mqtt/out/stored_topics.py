"""The stored topics of an earlier run, so that the hub can clear them after a change of the settings."""

from __future__ import annotations

import orjson

from appliance.adapters.base import Secrets
from appliance.adapters.mqtt.out.topics import HubTopics


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
