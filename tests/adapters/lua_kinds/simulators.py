"""Vendors' devices for the bundled kinds, on the simulator with faults; what they show are captures of real ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from appliance.adapters.simulated import SimulatedDevice

CAPTURES = Path(__file__).parents[2] / "fixtures" / "lua_kinds"


def capture(name: str) -> Any:
    """The JSON of a capture."""
    return json.loads((CAPTURES / name).read_text())


class JsonVendor(SimulatedDevice):
    """Answers GET of each path with JSON; `answers` may be changed at any time. `queries` are those that came."""

    content_type = "application/json"

    def __init__(self, answers: Mapping[str, Any] | None = None, **base: Any) -> None:
        super().__init__(**base)
        self.answers: dict[str, Any] = dict(answers or {})
        self.queries: list[Mapping[str, str]] = []
        self.bodies: list[bytes] = []

    def _routes(self) -> Iterable[web.RouteDef]:
        return [web.route("*", "/{path:.*}", self._answer)]

    def _note(self, request: web.Request, body: bytes) -> None:
        self.queries.append(dict(request.query))
        self.bodies.append(body)

    async def _answer(self, request: web.Request) -> web.Response:
        if request.path not in self.answers:
            return self._json({"error": "not found"}, 404)
        return self._json(self.answers[request.path])


class ShellyOne(SimulatedDevice):
    """A Shelly of the first generation: a plug, as it was captured."""

    content_type = "application/json"

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        self.capture = capture("shelly-plug-s.json")

    def _routes(self) -> Iterable[web.RouteDef]:
        return [
            web.get("/shelly", self._about),
            web.get("/status", self._status),
            web.get("/relay/{number}", self._switch),
        ]

    def _note(self, request: web.Request, body: bytes) -> None:
        """Nothing is noted."""

    async def _about(self, request: web.Request) -> web.Response:
        return self._json(self.capture["shelly"])

    async def _status(self, request: web.Request) -> web.Response:
        self._apply_due_writes()
        return self._json(self.capture["status"])

    async def _switch(self, request: web.Request) -> web.Response:
        relay = self.capture["status"]["relays"][int(request.match_info["number"])]
        wish = {"on": True, "off": False, "toggle": not relay["ison"]}[request.query["turn"]]
        self._take(lambda: relay.update(ison=wish))
        return self._json(relay)


class ShellyTwo(SimulatedDevice):
    """A Shelly of the second generation, as it was captured; `status` is what it shows."""

    content_type = "application/json"

    def __init__(self, name: str = "shelly-pro-3.json", **base: Any) -> None:
        super().__init__(**base)
        self.capture = capture(name)

    @property
    def status(self) -> dict[str, Any]:
        """What `Shelly.GetStatus` answers now."""
        self._apply_due_writes()
        found: dict[str, Any] = self.capture["status"]
        return found

    def _routes(self) -> Iterable[web.RouteDef]:
        return [
            web.get("/shelly", self._about),
            web.get("/rpc/Shelly.GetStatus", self._status),
            web.post("/rpc", self._call),
        ]

    def _note(self, request: web.Request, body: bytes) -> None:
        """Nothing is noted."""

    async def _about(self, request: web.Request) -> web.Response:
        return self._json(self.capture["shelly"])

    async def _status(self, request: web.Request) -> web.Response:
        return self._json(self.status)

    async def _call(self, request: web.Request) -> web.Response:
        call = await request.json()
        wish = call["params"]
        part = self.capture["status"].get(f"{call['method'].split('.')[0].lower()}:{wish['id']}")
        if part is None:
            return self._json({"id": call["id"], "error": {"code": -105, "message": "Argument 'id' not found!"}})
        if call["method"] == "Switch.Set":
            self._take(lambda: part.update(output=wish["on"]))
        elif call["method"] == "Switch.Toggle":
            self._take(lambda: part.update(output=not part["output"]))
        elif call["method"] == "Cover.GoToPosition":
            self._take(lambda: part.update(current_pos=wish["pos"]))
        return self._json({"id": call["id"], "result": {}})


class Tasmota(SimulatedDevice):
    """A Tasmota, put together of captures: its `status` answers `Status 0`. A `password` is asked for where set."""

    content_type = "application/json"

    def __init__(self, status: Mapping[str, Any] | None = None, password: str = "", **base: Any) -> None:
        super().__init__(**base)
        self.status = dict(status or tasmota_status("tasmota-switch.json"))
        self.password = password

    def _routes(self) -> Iterable[web.RouteDef]:
        return [web.get("/cm", self._command)]

    def _note(self, request: web.Request, body: bytes) -> None:
        """Nothing is noted."""

    async def _command(self, request: web.Request) -> web.Response:
        if self.password and request.query.get("password") != self.password:
            return self._json({"WARNING": "Need user=<username>&password=<password>"})
        word, _, value = request.query["cmnd"].partition(" ")
        self._apply_due_writes()
        if word == "Status":
            return self._json(self.status)
        state = self.status["StatusSTS"]
        if word.startswith("Power"):
            name = "POWER" if "POWER" in state else f"POWER{word[5:]}"
            wish = {"on": "ON", "off": "OFF", "toggle": "OFF" if state[name] == "ON" else "ON"}[value.lower()]
            self._take(lambda: state.update({name: wish}))
            return self._json({name: wish})
        if word in ("Dimmer", "CT"):
            self._take(lambda: state.update({word: int(value)}))
            return self._json({word: int(value)})
        return self._json({"Command": "Unknown"})


def tasmota_status(name: str) -> dict[str, Any]:
    """What `Status 0` answers: the parts that a capture has one by one, together."""
    parts = capture(name)
    return {key: value for part in parts.values() for key, value in part.items()}


class HomeWizardSocket(SimulatedDevice):
    """An energy socket of HomeWizard."""

    content_type = "application/json"

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        self._state: dict[str, Any] = {"power_on": False, "switch_lock": False, "brightness": 255}

    def _routes(self) -> Iterable[web.RouteDef]:
        return [
            web.get("/api", self._about),
            web.get("/api/v1/data", self._data),
            web.get("/api/v1/state", self._show),
            web.put("/api/v1/state", self._switch),
        ]

    def _note(self, request: web.Request, body: bytes) -> None:
        """Nothing is noted."""

    async def _about(self, request: web.Request) -> web.Response:
        return self._json(
            {"product_type": "HWE-SKT", "product_name": "Socket", "serial": "aa", "firmware_version": "3"}
        )

    async def _data(self, request: web.Request) -> web.Response:
        return self._json({"wifi_strength": 90, "active_power_w": 1.5, "total_power_import_kwh": 2.25})

    async def _show(self, request: web.Request) -> web.Response:
        self._apply_due_writes()
        return self._json(self._state)

    async def _switch(self, request: web.Request) -> web.Response:
        wish = await request.json()
        self._take(lambda: self._state.update(wish))
        return self._json(wish)


class HueBridge(SimulatedDevice):
    """A bridge with two lamps, which pushes what changes to who listens."""

    content_type = "application/json"

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        self.lamps: dict[str, dict[str, Any]] = {}
        self._streams: set[web.StreamResponse] = set()
        for number in (1, 2):
            self.add(number)

    def add(self, number: int) -> None:
        """Bring in a lamp of this number."""
        lamp = {"id": f"light{number}", "owner": {"rid": f"lamp{number}"}, "on": {"on": False}}
        self.lamps[f"light{number}"] = {**lamp, "dimming": {"brightness": 50.0}}

    def _routes(self) -> Iterable[web.RouteDef]:
        return [
            web.get("/clip/v2/resource/{what}", self._list),
            web.put("/clip/v2/resource/light/{id}", self._set),
            web.get("/eventstream/clip/v2", self._push),
        ]

    def _note(self, request: web.Request, body: bytes) -> None:
        """Nothing is noted."""

    async def _list(self, request: web.Request) -> web.Response:
        self._apply_due_writes()
        owners = [
            {"id": each["owner"]["rid"], "metadata": {"name": each["id"]}, "services": [{"rid": each["id"]}]}
            for each in self.lamps.values()
        ]
        rows = {"light": list(self.lamps.values()), "device": owners}
        return self._json({"errors": [], "data": rows.get(request.match_info["what"], [])})

    async def _set(self, request: web.Request) -> web.Response:
        lamp, wish = self.lamps[request.match_info["id"]], await request.json()
        self._take(lambda: lamp.update(wish))
        for stream in tuple(self._streams):
            event = [{"type": "update", "data": [lamp]}]
            await stream.write(f"id: 1\ndata: {json.dumps(event)}\n\n".encode())
        return self._json({"errors": [], "data": []})

    async def _push(self, request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(b": hi\n\n")
        self._streams.add(stream)
        try:
            await asyncio.Event().wait()
        finally:
            self._streams.discard(stream)
        return stream
