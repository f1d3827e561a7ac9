"""A simulated strip with WLED's JSON API, over HTTP and over its WebSocket."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from aiohttp import web

from appliance.adapters.simulated_device import SimulatedDevice

_EFFECTS = ("Solid", "Blink", "RSVD", "Breathe", "Rainbow")
PALETTES = ("Default", "Random Cycle")

_INFO = {
    "ver": "0.15.0",
    "vid": 2412100,
    "leds": {"count": 60, "fps": 30, "maxpwr": 850, "maxseg": 16, "pwr": 0, "lc": 1, "seglc": [1, 1], "rgbw": False},
    "name": "Simulated strip",
    "live": False,
    "ws": 0,
    "fxcount": len(_EFFECTS),
    "palcount": len(PALETTES),
    "wifi": {"bssid": "02:00:00:4C:41:53", "rssi": -40, "signal": 100, "channel": 1},
    "fs": {"u": 12, "t": 64, "pmt": 0},
    "arch": "esp32",
    "uptime": 60,
    "brand": "WLED",
    "product": "FOSS",
    "mac": "0200004c4153",
    "ip": "127.0.0.1",
}


def segment(number: int, **fields: Any) -> dict[str, Any]:
    plain = {"id": number, "start": number * 30, "stop": number * 30 + 30, "len": 30, "on": True, "bri": 255}
    colours = [[255, 255, 255], [0, 0, 0], [0, 0, 0]]
    rest = {"col": colours, "fx": 0, "sx": 128, "ix": 128, "pal": 0, "sel": True, "rev": False, "cct": 127}
    return {**plain, **rest, **fields}


class WledSimulator(SimulatedDevice):
    """A WLED controller. `state` can be changed in place. `writes` contains the bodies of all POSTs.

    `answer` replaces the response to every write, but the write still takes effect. The next `torn_writes` writes
    take effect, but their responses are incomplete. The next `busy_writes` writes get 503. `overrides` replaces parts
    of `/json`. `base` holds the arguments of `SimulatedDevice`.
    """

    content_type = "application/json"

    def __init__(self, *, segments: int = 2, **base: Any) -> None:
        super().__init__(**base)
        self.info: dict[str, Any] = deepcopy(_INFO)
        self.effects: list[str] = list(_EFFECTS)
        self.writes: list[Any] = []
        self.answer: bytes | None = None
        self.torn_writes = self.busy_writes = 0
        self.overrides: dict[str, Any] = {}
        self._sockets: set[web.WebSocketResponse] = set()
        self._state: dict[str, Any] = {
            "on": False,
            "bri": 128,
            "transition": 7,
            "ps": -1,
            "pl": -1,
            "nl": {"on": False, "dur": 60, "mode": 1, "tbri": 0, "rem": -1},
            "udpn": {"send": False, "recv": True},
            "lor": 0,
            "mainseg": 0,
            "seg": [segment(number) for number in range(segments)],
        }

    @property
    def state(self) -> dict[str, Any]:
        """The current object `state` of the JSON API."""
        self._apply_due_writes()
        return self._state

    async def push(self) -> None:
        for socket in tuple(self._sockets):
            await socket.send_json({"state": self.state, "info": self.info})

    def _routes(self) -> Iterable[web.RouteDef]:
        return [
            web.get("/json", self._answer_all),
            web.get("/json/{part}", self._answer_part),
            web.post("/json/state", self._post_state),
            web.post("/json", self._post_state),
            web.get("/ws", self._serve_socket),
        ]

    def _note(self, request: web.Request, body: bytes) -> None:
        if request.method == "POST":
            self.writes.append(json.loads(body))

    def _parts(self) -> dict[str, Any]:
        si = {"state": self.state, "info": self.info}
        parts = {**si, "si": si, "effects": self.effects, "palettes": [*PALETTES], "eff": self.effects}
        return {**parts, **self.overrides}

    async def _answer_all(self, request: web.Request) -> web.Response:
        parts = self._parts()
        return self._json({name: parts[name] for name in ("state", "info", "effects", "palettes")})

    async def _answer_part(self, request: web.Request) -> web.Response:
        parts = self._parts()
        part = request.match_info["part"]
        return self._json(parts[part]) if part in parts else self._json({"error": 4}, 501)

    async def _post_state(self, request: web.Request) -> web.Response:
        if self.busy_writes:
            self.busy_writes -= 1
            return self._json({"error": 3}, 503)
        if self.torn_writes:
            self.torn_writes -= 1
            self.faults.torn = 1
        change = await request.json()
        self._take(lambda: _merge(self._state, change))
        await self.push()
        if self.answer is not None:
            return web.Response(body=self.answer, content_type=self.content_type)
        return self._json(self.state if change.get("v") else {"success": True})

    async def _serve_socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._sockets.add(socket)
        try:
            await socket.send_json({"state": self.state, "info": self.info})
            async for _ in socket:
                pass
        finally:
            self._sockets.discard(socket)
        return socket


def _merge(state: dict[str, Any], change: Mapping[str, Any]) -> None:
    _apply(state, change)
    changes = change.get("seg", [])
    for each in [changes] if isinstance(changes, dict) else changes:
        for own in state["seg"]:
            if own["id"] == each.get("id", own["id"]):
                _apply(own, each)
                own.update({name: each[name] for name in ("fx", "pal", "n", "sx", "ix") if name in each})
                for number, colour in enumerate(each.get("col", [])):
                    own["col"][number] = list(colour)


def _apply(part: dict[str, Any], change: Mapping[str, Any]) -> None:
    if "on" in change:
        part["on"] = not part["on"] if change["on"] == "t" else bool(change["on"])
    if "bri" in change:
        part["on"] = change["bri"] > 0 and ("on" not in change or part["on"])
        part["bri"] = min(int(change["bri"]), 255) or part["bri"]
