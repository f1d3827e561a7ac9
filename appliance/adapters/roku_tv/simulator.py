"""A TV that speaks Roku's external control protocol (ECP)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from xml.sax.saxutils import escape, quoteattr, unescape

from aiohttp import web

from appliance.adapters.simulated import SimulatedDevice

HEADER = '<?xml version="1.0" encoding="UTF-8" ?>\n'
ON, STANDBY = "PowerOn", "Ready"
TUNER = "tvinput.dtv"

DEVICE_INFO = f"""{HEADER}<device-info>
<udn>28001240-0000-1000-8000-020000544653</udn>
<serial-number>LARES0000002</serial-number>
<device-id>LARES0000002</device-id>
<vendor-name>Roku</vendor-name>
<model-name>Simulated TV</model-name>
<model-number>0000X</model-number>
<model-region>US</model-region>
<is-tv>true</is-tv>
<is-stick>false</is-stick>
<supports-ethernet>true</supports-ethernet>
<wifi-mac>02:00:00:54:56:01</wifi-mac>
<ethernet-mac>02:00:00:54:56:02</ethernet-mac>
<network-type>ethernet</network-type>
<friendly-device-name>Simulated TV - LARES0000002</friendly-device-name>
<friendly-model-name>Simulated TV</friendly-model-name>
<default-device-name>Simulated TV - LARES0000002</default-device-name>
<user-device-name/>
<user-device-location/>
<software-version>12.5.0</software-version>
<software-build>4178</software-build>
<power-mode>{ON}</power-mode>
<supports-suspend>true</supports-suspend>
<supports-find-remote>false</supports-find-remote>
<supports-private-listening>false</supports-private-listening>
<headphones-connected>false</headphones-connected>
</device-info>
"""


class Elements:
    """The leaf elements of one XML text that has no attributes and uses each name once.

    They can be read and set; the text stays as it was written everywhere else.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def get(self, name: str) -> str | None:
        """The content of the element, unescaped; None where there is no such element."""
        found = self._find(name)
        return None if found is None else unescape(found["content"] or "")

    def put(self, name: str, content: str | None) -> None:
        """Give the element this content, escaped; add it if it is missing, take it out for None."""
        if content == self.get(name):
            return
        found = self._find(name)
        if found is None:
            start = end = self.text.rindex("</")
        else:
            start, end = found.span() if content is None else found.span("element")
        written = "" if content is None else f"<{name}>{escape(content)}</{name}>"
        self.text = self.text[:start] + written + self.text[end:]

    def _find(self, name: str) -> re.Match[str] | None:
        tag = re.escape(name)
        return re.search(rf"\s*(?P<element><{tag}\s*/>|<{tag}>(?P<content>[^<]*)</{tag}>)", self.text)


class Element:
    """An element of a TV's `device-info` as an attribute: its text, None where there is no such element."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, tv: TvSimulator, owner: type[TvSimulator]) -> str | None:
        tv._apply_due_writes()  # noqa: SLF001 - it is a part of that class
        return tv.info.get(self._name)

    def __set__(self, tv: TvSimulator, text: str | None) -> None:
        tv.info.put(self._name, text)


class TvSimulator(SimulatedDevice):
    """A Roku TV, or the device that the XML `device_info` describes; `power` overrides the power mode in it.

    `keys` holds all key presses in order, also those without effect. `limited` stands for the TV's setting that
    keeps apps from controlling it. `apps` (id to name), `active_app` (None: the home screen), `player` (`close`,
    `play`, `pause`), `channels` (number to name) and `channel` are served by the queries so called.
    `base` are the arguments of `SimulatedDevice`.
    """

    content_type = "text/xml"

    def __init__(self, *, device_info: str | None = None, power: bool | None = None, **base: Any) -> None:
        super().__init__(**base)
        self.info = Elements(DEVICE_INFO if device_info is None else device_info)
        self.keys: list[str] = []
        self.limited = False
        self.apps = {TUNER: "Antenna", "90001": "Films & more", "90002": "Radio"}
        self.active_app: str | None = None
        self.player = "close"
        self.channels = {"2.1": "First", "5.1": "Fifth"}
        self.channel = "2.1"
        if power is not None:
            self.power_mode = ON if power else STANDBY

    power_mode = Element("power-mode")
    """`PowerOn`, `Ready` (standby), `PowerOff`; None for a device that has no such element, as some sticks."""
    user_device_name = Element("user-device-name")
    """The name that its owner gave it; empty if none."""
    friendly_device_name = Element("friendly-device-name")
    """The name that it gives itself."""
    model_name = Element("model-name")

    def _routes(self) -> Iterable[web.RouteDef]:
        return [
            web.get("/query/device-info", self._get_info),
            web.get("/query/apps", self._get_apps),
            web.get("/query/active-app", self._get_active_app),
            web.get("/query/media-player", self._get_player),
            web.get("/query/tv-channels", self._get_channels),
            web.get("/query/tv-active-channel", self._get_active_channel),
            web.post("/keypress/{key}", self._keypress),
        ]

    def _note(self, request: web.Request, body: bytes) -> None:
        key = request.match_info.get("key")
        if key is not None:
            self.keys.append(key)

    async def _keypress(self, request: web.Request) -> web.Response:
        if self.limited:
            return web.Response(status=403, text="control by mobile apps is limited on this TV")
        key = request.match_info["key"]
        self._take(lambda: self._press(key))
        return web.Response()

    def _press(self, key: str) -> None:
        mode = self.info.get("power-mode")
        # A device without power modes has nothing that these keys could change.
        if mode is None:
            return
        if key == "PowerOn" or (key == "Power" and mode != ON):
            self.info.put("power-mode", ON)
        elif key in ("PowerOff", "Power") and mode == ON:
            self.info.put("power-mode", STANDBY)

    async def _get_info(self, request: web.Request) -> web.Response:
        self._apply_due_writes()
        return _answer(self.info.text)

    async def _get_apps(self, request: web.Request) -> web.Response:
        return _answer(f"{HEADER}<apps>{''.join(map(self._app, self.apps))}</apps>")

    async def _get_active_app(self, request: web.Request) -> web.Response:
        app = "<app>Roku</app>" if self.active_app is None else self._app(self.active_app)
        return _answer(f"{HEADER}<active-app>{app}</active-app>")

    def _app(self, app_id: str) -> str:
        kind = "tvin" if app_id.startswith("tvinput") else "appl"
        name = escape(self.apps.get(app_id, app_id))
        return f'<app id={quoteattr(app_id)} type="{kind}" version="1.0.0">{name}</app>'

    async def _get_player(self, request: web.Request) -> web.Response:
        times = "<position>6000 ms</position><duration>60000 ms</duration><is_live>false</is_live>"
        content = "" if self.player == "close" else times
        return _answer(f'{HEADER}<player error="false" state={quoteattr(self.player)}>{content}</player>')

    async def _get_channels(self, request: web.Request) -> web.Response:
        return _answer(f"{HEADER}<tv-channels>{''.join(map(self._channel, self.channels))}</tv-channels>")

    async def _get_active_channel(self, request: web.Request) -> web.Response:
        return _answer(f"{HEADER}<tv-channel>{self._channel(self.channel)}</tv-channel>")

    def _channel(self, number: str) -> str:
        name = escape(self.channels.get(number, number))
        return (
            f"<channel><number>{escape(number)}</number><name>{name}</name>"
            "<type>air-digital</type><user-hidden>false</user-hidden></channel>"
        )


simulate = TvSimulator
"""Makes the simulator of the demo."""


def _answer(xml: str) -> web.Response:
    return web.Response(text=xml, content_type=TvSimulator.content_type, charset="utf-8")
