"""The route of the metrics."""

from __future__ import annotations

from sanic import HTTPResponse

from appliance.api.auth import Role
from appliance.api.exposition import CONTENT_TYPE
from appliance.api.hub_metrics import Metrics
from appliance.api.responses import Response
from appliance.api.route import Call, route
from appliance.tables.json_schema import TEXT


class MetricsPage:
    """Handler of `/metrics`."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    @route("GET", "/metrics", Role.READ, TEXT, media_type=CONTENT_TYPE)
    async def show(self, call: Call) -> HTTPResponse:
        """What the hub counts and measures, in Prometheus's text format."""
        return Response(self._metrics.expose(), 200, {"content-type": CONTENT_TYPE})
