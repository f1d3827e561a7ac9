"""Metrics for Prometheus."""

from __future__ import annotations

import asyncio

from appliance.api.metrics import CONTENT_TYPE, write_metrics
from appliance.api.responses import Response
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.tables.json_schema import TEXT


class MetricsPage(ApiResource):
    """Handler of `/metrics`."""

    @route("GET", "/metrics", Role.READ, TEXT, media_type=CONTENT_TYPE)
    async def show(self, call: Call) -> object:
        """Return the hub's metrics in Prometheus's text format."""
        figures = await self.parts.figures.collect()
        text = await asyncio.to_thread(write_metrics, figures, self.parts.requests.copy())
        return Response(text, 200, {"content-type": CONTENT_TYPE})
