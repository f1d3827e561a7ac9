"""Converts the values of an endpoint to an observation of its device."""

from __future__ import annotations

from typing import Any

from appliance.adapters.matter.clusters import POWER_SOURCE, alarms_of, class_of, find_nulls, kind_of, read
from appliance.adapters.matter.commands import command_specs_of
from appliance.adapters.matter.nodes import ROOT_ENDPOINT, Endpoint, Node
from appliance.adapters.matter.presses import events_of
from appliance.home.model import Observation

_POWERED_ENDPOINTS = 31
"""The attribute with the list of the endpoints that a power source supplies."""


def observe(
    device_id: str, node: Node, endpoint: Endpoint, number: int | None, parent_id: str | None, *, is_old: bool = False
) -> Observation:
    """Return the device's observation. If `is_old` is true, omit values that may be outdated. `number` distinguishes
    the devices of one node, and is None for the only device of a node."""
    power_source = _power_source(node, endpoint)
    values, wrong = ({}, {}) if is_old else read(endpoint, power_source)
    commands = command_specs_of(endpoint)
    announced = {
        "alarms": alarms_of(endpoint),
        "events": events_of(endpoint),
        "attributes": find_nulls(endpoint, power_source),
    }
    return Observation(
        device_id=device_id,
        kind=kind_of(endpoint, has_commands=bool(commands)),
        attributes=values,
        wrong=wrong,
        name=node.name_of(endpoint, number),
        info=node.info_of(endpoint, parent_id, class_of(endpoint)),
        commands=commands,
        vendor_specific={
            "node_id": node.id,
            "endpoint": endpoint.number,
            **{name: each for name, each in announced.items() if each},
        },
        is_available=not is_old and node.is_reachable(endpoint),
    )


def _power_source(node: Node, endpoint: Endpoint) -> Endpoint | None:
    """Return the endpoint with the battery: this endpoint, an endpoint whose list includes it, or the root
    endpoint."""
    sources = [each for each in node.endpoints.values() if POWER_SOURCE in each.clusters]
    if endpoint in sources:
        return endpoint
    listing = (each for each in sources if endpoint.number in _powered_by(each))
    is_bridged = node.aggregator_of(endpoint) is not None
    root = None if is_bridged else next((each for each in sources if each.number == ROOT_ENDPOINT), None)
    return next(listing, root)


def _powered_by(source: Endpoint) -> list[Any]:
    listed = source.get(POWER_SOURCE, _POWERED_ENDPOINTS)
    return listed if isinstance(listed, list) else []
