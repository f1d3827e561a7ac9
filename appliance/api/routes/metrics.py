"""Metrics for Prometheus."""

from __future__ import annotations

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
        return Response(
            write_metrics(self.parts.figures.tree(), self.parts.requests), 200, {"content-type": CONTENT_TYPE}
        )
