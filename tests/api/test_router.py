"""The memory of the router."""

from __future__ import annotations

import gc

from appliance.api.app import ROUTES
from appliance.api.router import Router


def test_few_paths_are_cached() -> None:
    """After a flood, each object of a cached path may keep a page in use."""
    router = Router()
    for route in ROUTES:
        router.add(route)
    gc.collect()
    before = len(gc.get_objects())
    for number in range(2000):
        assert router.find("GET", f"/devices/lamp{number}")[1] == {"device_id": f"lamp{number}"}
    gc.collect()
    assert len(gc.get_objects()) - before < 500
