"""Simulates a TV with Roku's external control protocol (ECP)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from xml.sax.saxutils import escape

from aiohttp import web
from aiohttp.typedefs import Handler

from appliance.adapters.simulated_device import SimulatedDevice
from appliance.tables.addresses import is_numeric

ON, STANDBY = "PowerOn", "Ready"

_INFO = {
    "udn": "28001240-0000-1000-8000-020000544653",
    "serial-number": "LARES0000002",
    "device-id": "LARES0000002",
    "vendor-name": "Roku",
    "model-name": "Simulated TV",
    "model-number": "0000X",
    "model-region": "US",
    "is-tv": "true",
    "is-stick": "false",
    "supports-ethernet": "true",
    "wifi-mac": "02:00:00:54:56:01",
    "ethernet-mac": "02:00:00:54:56:02",
    "network-type": "ethernet",
    "friendly-device-name": "Simulated TV - LARES0000002",
    "friendly-model-name": "Simulated TV",
    "default-device-name": "Simulated TV - LARES0000002",
    "user-device-name": "",
    "user-device-location": "",
    "software-version": "12.5.0",
    "software-build": "4178",
    "power-mode": ON,
    "supports-suspend": "true",
    "supports-find-remote": "false",
    "supports-private-listening": "false",
    "headphones-connected": "false",
}


class TvSimulator(SimulatedDevice):
    """Simulates a Roku TV that has no channels and displays its home screen. `info` maps the elements of the TV's
    `device-info` to their texts.

    `keys` holds all key presses in order, including those without effect. If `limited` is true, the TV rejects
    control by apps. If `guards_host` is true, the TV rejects requests whose `Host` is a name. `base` holds the
    arguments of `SimulatedDevice`.
    """

    content_type = "text/xml"

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        self.info = dict(_INFO)
        self.keys: list[str] = []
        self.limited = self.guards_host = False

    @property
    def power_mode(self) -> str | None:
        """`PowerOn`, `Ready` (standby), or `PowerOff`. Some sticks do not report their power mode. In this case, the
        value is None."""
        self._apply_due_writes()
        return self.info.get("power-mode")

    @power_mode.setter
    def power_mode(self, mode: str | None) -> None:
        self.info.pop("power-mode", None)
        self.info |= {} if mode is None else {"power-mode": mode}

    def _routes(self) -> Iterable[web.RouteDef]:
        return [
            web.get("/query/device-info", self._get_info),
            web.get("/query/{part}", self._get_part),
            web.post("/keypress/{key}", self._keypress),
        ]

    def _note(self, request: web.Request, body: bytes) -> None:
        key = request.match_info.get("key")
        if key is not None:
            self.keys.append(key)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        host = (request.headers.get("Host") or "").rpartition(":")[0].strip("[]")
        if self.guards_host and not is_numeric(host):
            return web.Response(status=403)
        return await super()._guard(request, handler)

    async def _keypress(self, request: web.Request) -> web.Response:
        if self.limited:
            return web.Response(status=403, text="control by mobile apps is limited on this TV")
        key = request.match_info["key"]
        self._take(lambda: self._press(key))
        return web.Response()

    def _press(self, key: str) -> None:
        mode = self.info.get("power-mode")
        # On a device without power modes, these keys have no effect.
        if mode is None:
            return
        if key == "PowerOn" or (key == "Power" and mode != ON):
            self.info["power-mode"] = ON
        elif key in ("PowerOff", "Power") and mode == ON:
            self.info["power-mode"] = STANDBY

    async def _get_info(self, request: web.Request) -> web.Response:
        self._apply_due_writes()
        elements = "\n".join(f"<{name}>{escape(text)}</{name}>" for name, text in self.info.items())
        return _answer(f"<device-info>\n{elements}\n</device-info>\n")

    async def _get_part(self, request: web.Request) -> web.Response:
        """Return the requested list: the apps, the active app, the player, or the channels."""
        film = '<app id="90001" type="appl" version="1.0.0">Films</app>'
        parts = {"apps": film, "active-app": "<app>Roku</app>", "media-player": "", "tv-channels": ""}
        name = request.match_info["part"]
        return _answer(f"<{name}>{parts[name]}</{name}>") if name in parts else web.Response(status=404)


simulate = TvSimulator


def _answer(xml: str) -> web.Response:
    text = f'<?xml version="1.0" encoding="UTF-8" ?>\n{xml}'
    return web.Response(text=text, content_type=TvSimulator.content_type, charset="utf-8")
