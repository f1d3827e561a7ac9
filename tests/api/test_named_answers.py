"""The table of routes matches the answers that the specification and the contract list. The list is written a
second time in this file, by hand."""

from __future__ import annotations

import pytest

from appliance.api.app import ROUTES
from appliance.api.route import Route
from tests.fakes import contract_recorder
from tests.fakes.contract_recorder import answers_of

NAMED: dict[str, set[int]] = {
    "GET /health": {200},
    "GET /ready": {200, 503},
    "GET /diagnostics": {200, 401, 403},
    "POST /diagnostics/clock/trust": {200, 401, 403},
    "GET /diagnostics/log": {200, 400, 401, 403},
    "GET /diagnostics/state": {200, 401, 403},
    "GET /diagnostics/status": {200, 401, 403},
    "GET /why": {200, 400, 401, 404},
    "POST /auth/master": {200, 400, 401, 403},
    "POST /diagnostics/reload": {200, 401, 403},
    "GET /diagnostics/reload_watch": {200, 401, 403},
    "GET /capabilities": {200, 401},
    "GET /adapters": {200, 401},
    "GET /adapters/{id}": {200, 401, 404},
    "POST /adapters/{id}/operations/{id}": {200, 400, 401, 403, 404, 413, 501, 503},
    "GET /devices": {200, 400, 401},
    "GET /devices/{id}": {200, 400, 401, 404},
    "POST /devices/{id}/room": {200, 400, 401, 403, 404, 413},
    "POST /devices/{id}/name": {200, 400, 401, 403, 404, 413},
    "POST /devices/{id}/alias": {200, 400, 401, 403, 404, 409, 413},
    "POST /devices/{id}/command": {200, 400, 401, 403, 404, 413, 501},
    "GET /devices/{id}/picture": {200, 400, 401, 404},
    "GET /devices/{id}/history": {200, 400, 401, 404},
    "GET /devices/{id}/history/{id}": {200, 400, 401, 404},
    "GET /audit/commands": {200, 400, 401},
    "GET /rooms": {200, 401},
    "POST /rooms": {200, 400, 401, 403, 413},
    "GET /rooms/{id}": {200, 401, 404},
    "DELETE /rooms/{id}": {204, 401, 403, 404},
    "GET /rooms/{id}/devices": {200, 401, 404},
    "POST /rooms/{id}/command": {200, 400, 401, 403, 404, 413},
    "GET /groups": {200, 401},
    "POST /groups": {200, 400, 401, 403, 413},
    "GET /groups/{id}": {200, 401, 404},
    "DELETE /groups/{id}": {204, 401, 403, 404},
    "POST /groups/{id}/members": {200, 400, 401, 403, 404, 413},
    "GET /groups/{id}/devices": {200, 401, 404},
    "POST /groups/{id}/command": {200, 400, 401, 403, 404, 413},
    "GET /scenes": {200, 401},
    "POST /scenes/reload": {200, 401, 403},
    "POST /scenes/{id}/execute": {200, 202, 400, 401, 403, 404, 423},
    "GET /scenes/{id}/history": {200, 400, 401, 404},
    "GET /automations": {200, 400, 401},
    "POST /automations/reload": {200, 401, 403},
    "GET /variables": {200, 401},
    "GET /variables/{id}": {200, 401, 404},
    "PUT /variables/{id}": {200, 400, 401, 403, 413},
    "DELETE /variables/{id}": {204, 401, 403, 404},
    "GET /preferences": {200, 401},
    "PUT /preferences": {200, 400, 401, 403, 413},
    "GET /timers": {200, 401},
    "DELETE /timers/{id}": {204, 401, 403, 404},
    "POST /automations/{id}/cancel": {200, 401, 403, 404},
    "GET /executions": {200, 401},
    "POST /executions/{id}/cancel": {200, 401, 403, 404},
    "POST /scenes/{id}/cancel": {200, 401, 403, 404},
    "GET /automations/{id}/next": {200, 401, 404},
    "GET /automations/{id}": {200, 401, 404},
    "POST /automations/{id}/enabled": {200, 400, 401, 403, 404, 413},
    "POST /automations/{id}/execute": {200, 400, 401, 403, 404, 413},
    "POST /automations/{id}/validate": {200, 400, 401, 403, 404},
    "GET /automations/{id}/history": {200, 400, 401, 404},
    "POST /scripts/reload": {200, 401, 403},
    "POST /adapters/reload": {200, 401, 403},
    "GET /openapi.json": {200, 401},
    "GET /asyncapi.json": {200, 401},
    "GET /diagnostics/backup": {200, 400, 401, 403},
    "GET /metrics": {200, 401},
    "GET /auth/keys": {200, 401, 403},
    "POST /auth/keys": {200, 400, 401, 403, 413},
    "DELETE /auth/keys/{id}": {204, 401, 403, 404},
    "GET /files": {200, 401, 403},
    "POST /files/check": {200, 400, 401, 403, 413},
    "GET /files/{id}": {200, 400, 401, 403, 404},
    "PUT /files/{id}": {200, 400, 401, 403, 409, 413},
    "DELETE /files/{id}": {204, 401, 403, 404, 405},
    "GET /files/sections": {200, 400, 401, 403},
    "PUT /files/sections/{id}": {200, 400, 401, 403, 409, 413},
    "DELETE /files/sections/{id}": {204, 400, 401, 403, 404},
    "POST /files/sections/{id}/try": {200, 400, 401, 403, 404, 413},
    "GET /kinds": {200, 401},
    "GET /files/{id}/versions": {200, 401, 403, 404},
    "GET /files/{id}/versions/{id}": {200, 401, 403, 404},
    "GET /recipes": {200, 401, 403},
    "POST /recipes/{id}": {200, 400, 401, 403, 404, 409, 413},
    "POST /recipes/{id}/check": {200, 400, 401, 403, 404, 409, 413},
    "POST /simulate": {200, 400, 401, 403, 413},
    "GET /completions": {200, 401, 403},
    "GET /discovery": {200, 400, 401, 403},
    "GET /hooks/{id}": {200, 400, 401, 403, 404},
    "POST /hooks/{id}": {200, 400, 401, 403, 404, 413},
    "GET /overview": {200, 401},
    "GET /devices/{id}/uses": {200, 401, 404},
    "GET /events": {101, 400, 401, 426},
}
"""Answers of each route, in addition to the answers to malformed requests. For /events, 400 means a failed
handshake, and 426 a plain request."""

DURABLE = {
    "POST /devices/{id}/name",
    "POST /devices/{id}/alias",
    "POST /devices/{id}/room",
    "POST /rooms",
    "DELETE /rooms/{id}",
    "POST /groups",
    "DELETE /groups/{id}",
    "POST /groups/{id}/members",
    "POST /auth/keys",
    "DELETE /auth/keys/{id}",
    "POST /automations/{id}/enabled",
    "POST /diagnostics/clock/trust",
    "POST /auth/master",
    "PUT /files/{id}",
    "DELETE /files/{id}",
    "DELETE /files/sections/{id}",
    "PUT /variables/{id}",
    "DELETE /variables/{id}",
    "DELETE /timers/{id}",
    "PUT /preferences",
}
"""The answer of a durable route while the store cannot write."""

for answers in NAMED.values():
    if 401 in answers:
        answers.add(403)  # a hook key can call only its own hook
    if 413 in answers:
        answers |= {415, 503}  # a compressed body, or more unread bodies than allowed

for durable in DURABLE:
    NAMED[durable].add(503)


def name_of(route: Route) -> str:
    segments = ["{id}" if segment.startswith("<") else segment for segment in route.path.split("/")]
    return f"{route.method} {'/'.join(segments)}"


def test_each_route_lists_exactly_the_documented_answers() -> None:
    assert {name_of(route): answers_of(route) for route in ROUTES} == NAMED


def test_the_contract_recorder_reports_an_unlisted_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {("GET", "/health", 200), ("HEAD", "/devices", 200), ("PATCH", "/rooms", 405), ("POST", "/rooms", 408)}
    strange = {("GET", "/health", 500), ("GET", "/health", 429), ("POST", "/rooms", 201), ("PUT", "/rooms", 200)}
    monkeypatch.setattr(contract_recorder, "SEEN", seen | {("GET", "/devices", 429)})
    assert contract_recorder.unnamed() == set()
    monkeypatch.setattr(contract_recorder, "SEEN", seen | strange)
    assert contract_recorder.unnamed() == strange
