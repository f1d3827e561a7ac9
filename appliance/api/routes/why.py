"""Explains the state of automations, scenes, and devices."""

from __future__ import annotations

import asyncio

from appliance.api.roles import Role
from appliance.api.route import ApiParts, ApiResource, Call, route
from appliance.api.why.explain import explain
from appliance.home.texts import identifier
from appliance.tables.fields import Field
from appliance.tables.json_schema import INSTANT, OBJECT, TEXT, array_of, described, maybe

_DECISION = described("Decision", at=INSTANT, sentence=TEXT)
_STATED = {**maybe(OBJECT), "description": "The fields of an automation's file: `{triggers, conditions, notes}`."}
_WHY = described(
    "Why",
    kind=TEXT,
    id=TEXT,
    timezone=TEXT,
    summary=array_of(TEXT),
    decisions=array_of(_DECISION),
    automation=_STATED,
)


class WhyApi(ApiResource):
    """Handler of `/why`. One explanation is computed at a time, because several threads would delay the event loop
    together."""

    def __init__(self, parts: ApiParts) -> None:
        super().__init__(parts)
        self._lock = asyncio.Lock()

    @route("GET", "/why", Role.READ, _WHY, statuses=(200, 404), query={"id": Field(identifier)})
    async def explain(self, call: Call) -> object:
        """Explain in sentences the state of an automation, scene, or device, and its last ten decisions."""
        async with self._lock:
            explained = await explain(self.hub, call.query()["id"])
        return {**explained, "timezone": self.hub.timezone.key}
