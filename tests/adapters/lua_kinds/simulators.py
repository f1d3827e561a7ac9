"""Simulated vendors for those bundled kinds that accept commands. Each docstring names the source of the answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aiohttp import WSMsgType, web

from appliance.adapters.lua_kinds.web_request import WebRequest
from tests.adapters.lua_kinds.vendor import Answer, Vendor, capture, header

NONCE = 1625038762


class ShellyOne(Vendor):
    """A Shelly of the first generation: a plug, as captured by aioshelly."""

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        self.capture = capture("shelly-plug-s.json")
        self.answers = {"/shelly": self.capture["shelly"], "/status": self.status, "/relay/0": self._switch}

    @property
    def status(self) -> dict[str, Any]:
        """The answer to `GET /status`."""
        found: dict[str, Any] = self.capture["status"]
        return found

    def _switch(self, asked: WebRequest) -> Answer:
        relay = self.status["relays"][0]
        goal = {"on": True, "off": False, "toggle": not relay["ison"]}.get(asked.query.get("turn", ""), relay["ison"])
        self._take(lambda: relay.update(ison=goal))
        return relay


class ShellyTwo(Vendor):
    """A Shelly of the second generation, as captured by aioshelly. The device accepts calls over HTTP and over its
    WebSocket.

    `config` has the configuration of each component, without the id. `behind` contains the components of devices that
    a Bluetooth gateway connects. If `password` is set, the WebSocket requires it.
    """

    def __init__(self, name: str = "shelly-pro-3.json", password: str = "", **base: Any) -> None:
        super().__init__(**base)
        self.capture = capture(name)
        self.password = password
        self.config: dict[str, dict[str, Any]] = {}
        self.behind: list[dict[str, Any]] = []
        self.sockets: list[web.WebSocketResponse] = []
        self.answers = {
            "/shelly": self.capture["shelly"],
            "/rpc/Shelly.GetStatus": lambda asked: self.status,
            "/rpc/Shelly.GetConfig": lambda asked: self._whole_config(),
            "/rpc": self._post,
        }

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Push a notification to each connection whose client has sent a valid first call."""
        for socket in self.sockets:
            await socket.send_json({"src": "shelly", "dst": "lares", "method": method, "params": {"ts": 1, **params}})

    async def press(self, number: int, *names: str) -> None:
        part = {"component": f"input:{number}", "id": number}
        await self.notify("NotifyEvent", {"events": [{**part, "event": name} for name in names]})

    def _whole_config(self) -> dict[str, Any]:
        parts = {
            key: {"id": part["id"], "name": None}
            for key, part in self.status.items()
            if isinstance(part, dict) and "id" in part
        }
        parts = {key: {**part, **self.config.get(key, {})} for key, part in parts.items()}
        return {**parts, "sys": {"device": {"name": "Test Name"}}}

    def _is_allowed(self, call: Mapping[str, Any]) -> bool:
        if not self.password:
            return True
        auth = call.get("auth") or {}
        inner, outer = f"admin:shelly-realm:{self.password}", "dummy_method:dummy_uri"
        secret, method = (hashlib.sha256(each.encode()).hexdigest() for each in (inner, outer))
        whole = f"{secret}:{NONCE}:1:{auth.get('cnonce')}:auth:{method}"
        return bool(auth.get("response") == hashlib.sha256(whole.encode()).hexdigest())

    @property
    def status(self) -> dict[str, Any]:
        """The answer to `Shelly.GetStatus`."""
        found: dict[str, Any] = self.capture["status"]
        return found

    def _routes(self) -> Iterable[web.RouteDef]:
        return [web.get("/rpc", self._socket), *super()._routes()]

    def _post(self, asked: WebRequest) -> Answer:
        return self._call(asked.json)

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                self._apply_due_writes()
                call = message.json()
                about = {"id": call["id"], "src": self.capture["shelly"]["id"], "dst": call["src"]}
                if self._is_allowed(call):
                    self.sockets = [*(each for each in self.sockets if each is not socket), socket]
                    await socket.send_json({**about, **self._call(call)})
                else:
                    question = {"auth_type": "digest", "nonce": NONCE, "nc": 1, "realm": "shelly-realm"}
                    error = {"code": 401, "message": json.dumps({**question, "algorithm": "SHA-256"})}
                    await socket.send_json({**about, "error": error})
        return socket

    def _call(self, call: Mapping[str, Any]) -> dict[str, Any]:
        method, goal = call["method"], call.get("params") or {}
        if method == "Shelly.GetStatus":
            return {"id": call["id"], "result": self.status}
        if method == "Shelly.GetConfig":
            return {"id": call["id"], "result": self._whole_config()}
        if method == "Shelly.GetDeviceInfo":
            return {"id": call["id"], "result": self.capture["shelly"]}
        if method == "Shelly.GetComponents":
            page = self.behind[goal["offset"] : goal["offset"] + 2]
            return {"id": call["id"], "result": {"components": page, "total": len(self.behind), **goal}}
        if method == "BluTrv.Call":
            [valve] = [each for each in self.behind if each["key"] == f"blutrv:{goal['id']}"]
            self._take(lambda: valve["status"].update(target_C=goal["params"]["target_C"]))
            return {"id": call["id"], "result": None}
        dynamic = {each["key"]: each["status"] for each in self.behind}
        part = {**dynamic, **self.status}.get(f"{method.split('.')[0].lower()}:{goal.get('id')}")
        if part is None:
            return {"id": call["id"], "error": {"code": -105, "message": "Argument 'id' not found!"}}
        self._take(self._change(method.split(".")[1], part, goal))
        return {"id": call["id"], "result": {}}

    def _change(self, what: str, part: dict[str, Any], goal: Mapping[str, Any]) -> Callable[[], None]:
        if what == "Toggle":
            return lambda: part.update(output=not part["output"])
        if what == "SetConfig":
            return lambda: part.update({key: value for key, value in goal["config"].items() if key != "id"})
        if what == "GoToPosition":
            return lambda: part.update(current_pos=goal["pos"])
        reported = {
            "output": goal.get("on"),
            **{name: goal.get(name) for name in ("brightness", "ct", "rgb", "mode", "value")},
        }
        return lambda: part.update({key: value for key, value in reported.items() if value is not None})


class Tasmota(Vendor):
    """A Tasmota device that answers with the captures from the project Gladys. `status` is the answer to `Status 0`.
    If `password` is set, requests need the password."""

    def __init__(self, status: Mapping[str, Any] | None = None, password: str = "", **base: Any) -> None:
        super().__init__({"/cm": self._command}, **base)
        self.status = dict(status or tasmota_status("tasmota-switch.json"))
        self.password = password

    def _command(self, asked: WebRequest) -> Answer:
        if self.password and asked.query.get("password") != self.password:
            return {"WARNING": "Need user=<username>&password=<password>"}
        word, _, value = asked.query["cmnd"].partition(" ")
        state = self.status["StatusSTS"]
        if word == "Status":
            return self.status
        if word.startswith("Power"):
            name = "POWER" if "POWER" in state else f"POWER{word[5:]}"
            goal: Any = {"on": "ON", "off": "OFF", "toggle": "OFF" if state[name] == "ON" else "ON"}[value.lower()]
        elif word.startswith("Shutter"):
            return self._move(word, value)
        elif word in ("Dimmer", "CT", "FanSpeed"):
            name, goal = word, int(value)
        elif word == "HSBColor":
            name, goal = word, value
        else:
            return {"Command": "Unknown"}
        self._take(lambda: state.update({name: goal}))
        return {name: goal}

    def _move(self, word: str, value: str) -> Answer:
        shutter = self.status["StatusSNS"][f"Shutter{word[-1]}"]
        action = word.removeprefix("Shutter")[:-1]
        if action == "Tilt":
            self._take(lambda: shutter.update(Tilt=int(value)))
            return {word: shutter["Tilt"]}
        goal = {"Open": 100, "Close": 0, "Stop": shutter["Position"]}.get(action)
        self._take(lambda: shutter.update(Position=int(value) if goal is None else goal))
        return {word: shutter["Position"]}


def tasmota_status(name: str) -> dict[str, Any]:
    parts = capture(name)
    return {key: value for part in parts.values() for key, value in part.items()}


class HomeWizardSocket(Vendor):
    """An energy socket, from HomeWizard's published API v1 (`/api`, `/api/v1/data`, `/api/v1/state`)."""

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        about = {"product_type": "HWE-SKT", "product_name": "Energy Socket", "serial": "3c39e7aabbcc"}
        data = {"wifi_ssid": "home", "wifi_strength": 94, "active_power_w": 543.2, "active_power_l1_w": 543.2}
        data |= {"total_power_import_kwh": 30.511, "total_power_import_t1_kwh": 30.511}
        data |= {"total_power_export_kwh": 85.951, "total_power_export_t1_kwh": 85.951}
        data |= {"active_voltage_v": 231.5, "active_current_a": 2.346, "active_frequency_hz": 50.005}
        self.state: dict[str, Any] = {"power_on": False, "switch_lock": False, "brightness": 255}
        self.answers = {
            "/api": {**about, "firmware_version": "4.07", "api_version": "v1"},
            "/api/v1/data": data,
            "/api/v1/state": self._switch,
        }

    def _switch(self, asked: WebRequest) -> Answer:
        if asked.method != "PUT":
            return self.state
        self._take(lambda: self.state.update(asked.json))
        return asked.json


class HueBridge(Vendor):
    """A bridge with two lamps, from the resources of aiohue's models. It pushes changes.

    If `key` is set, the bridge accepts only this application key.
    """

    pushes = "/eventstream/clip/v2"

    def __init__(self, key: str = "", **base: Any) -> None:
        super().__init__(**base)
        self.key = key
        self.lamps: dict[str, dict[str, Any]] = {}
        self.connected: dict[str, dict[str, Any]] = {}
        self.others: dict[str, list[dict[str, Any]]] = {}
        for number in (1, 2):
            self.add(number)

    def add(self, number: int) -> None:
        lamp: dict[str, Any] = {
            "id": f"light{number}",
            "id_v1": f"/lights/{number}",
            "type": "light",
            "mode": "normal",
        }
        owner = {"rid": f"lamp{number}", "rtype": "device"}
        lamp |= {"owner": owner, "metadata": {"name": f"Lamp {number}", "archetype": "sultan_bulb"}}
        white = {"mirek": 366, "mirek_valid": True, "mirek_schema": {"mirek_minimum": 153, "mirek_maximum": 454}}
        lamp |= {"on": {"on": False}, "dimming": {"brightness": 50.0, "min_dim_level": 0.2}}
        lamp |= {"color_temperature": white, "dynamics": {"status": "none", "status_values": ["none"], "speed": 0.0}}
        self.lamps[f"light{number}"] = lamp | {"alert": {"action_values": ["breathe"]}}
        self.connected[f"lamp{number}"] = {
            "id": f"zigbee{number}",
            "type": "zigbee_connectivity",
            "owner": owner,
            "status": "connected",
            "mac_address": "00:17:88:01:0b:aa:bb:cc",
        }

    def remove(self, number: int) -> None:
        del self.lamps[f"light{number}"]

    async def show(self, number: int, **parts: Any) -> None:
        """Change these parts of a lamp, and push the change."""
        lamp = self.lamps[f"light{number}"]
        lamp.update(parts)
        await self.push([{"type": "update", "data": [{key: lamp[key] for key in ("id", "type", "owner", *parts)}]}])

    async def press(self, number: int) -> None:
        """Press a button of the lamp, and push the event."""
        report = {"updated": "2026-11-23T18:00:00.000Z", "event": "short_release"}
        button = {"button_report": report, "last_event": "short_release"}
        owner = self.lamps[f"light{number}"]["owner"]
        await self.push(
            [{"type": "update", "data": [{"id": "button1", "type": "button", "owner": owner, "button": button}]}]
        )

    async def reach(self, number: int, status: str) -> None:
        """Lose or find the lamp, and push the change."""
        link = self.connected[f"lamp{number}"]
        link["status"] = status
        reported = {key: link[key] for key in ("id", "type", "owner", "status")}
        await self.push([{"type": "update", "data": [reported]}])

    def answer(self, asked: WebRequest) -> Answer:
        """Return the resources of one type or of all types. Apply a PUT request to its lamp."""
        head, _, rest = asked.path.partition("/clip/v2/resource")
        what, _, id_ = rest.strip("/").partition("/")
        if head or (not rest and not asked.path.endswith("resource")):
            return super().answer(asked)
        if asked.method == "PUT":
            return self._set(self.lamps[id_], asked.json)
        rows = {"light": list(self.lamps.values()), "device": [self._device(each) for each in self.lamps.values()]}
        rows |= {"zigbee_connectivity": [self.connected[each["owner"]["rid"]] for each in self.lamps.values()]}
        rows = {key: [*rows.get(key, ()), *self.others.get(key, ())] for key in {**rows, **self.others}}
        return {"errors": [], "data": rows.get(what, []) if what else [each for row in rows.values() for each in row]}

    def _device(self, lamp: Mapping[str, Any]) -> dict[str, Any]:
        number = lamp["id"].removeprefix("light")
        services = {"light": lamp["id"], "zigbee_connectivity": f"zigbee{number}"}
        product = {"model_id": "LTA001", "manufacturer_name": "Signify Netherlands B.V.", "certified": True}
        product |= {"product_name": "Hue ambiance lamp", "product_archetype": "sultan_bulb"}
        return {
            "id": f"lamp{number}",
            "type": "device",
            "product_data": {**product, "software_version": "1.104.2"},
            "metadata": {"name": f"Lamp {number}", "archetype": "sultan_bulb"},
            "services": [{"rid": rid, "rtype": rtype} for rtype, rid in services.items()],
        }

    def _set(self, lamp: dict[str, Any], goal: Mapping[str, Any]) -> Answer:
        self._take(lambda: lamp.update({key: {**lamp.get(key, {}), **part} for key, part in goal.items()}))
        return {"errors": [], "data": [{"rid": lamp["id"], "rtype": "light"}]}

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if self.key and request.headers.get("hue-application-key") != self.key:
            return self._json({"errors": [{"description": "unauthorized user"}], "data": []}, 403)
        response = await super()._serve(request)
        if request.method == "PUT":
            lamp = self.lamps[request.path.rpartition("/")[2]]
            await self.show(int(lamp["id"].removeprefix("light")), on=lamp["on"], dimming=lamp["dimming"])
        return response


class Daikin(Vendor):
    """An air conditioner with a BRP069 adapter, from the sample answers in pydaikin's documentation."""

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        control = "pow=0,mode=3,adv=,stemp=25.0,shum=0,dt1=25.0,dt2=M,dt3=25.0,dt4=21.0,dt7=25.0,dh1=AUTO,dh2=50"
        control += ",dh3=0,dh4=0,dh7=AUTO,alert=255,f_rate=A,f_dir=0,dfr3=A,dfr4=5,dfr6=3,en_demand=0"
        about = "type=aircon,reg=eu,ver=1_2_54,rev=203DE8C,pow=1,err=0,name=%4e%6f%74%74%65,mac=409F38D107AC,en_hol=0"
        self.control, self.about = _fields(control), _fields(about)
        self.sensor = _fields("htemp=21.5,hhum=-,otemp=7.0,err=0,cmpfreq=0")
        self.answers = {
            "/common/basic_info": lambda asked: self._say(self.about),
            "/aircon/get_control_info": lambda asked: self._say(self.control),
            "/aircon/get_sensor_info": lambda asked: self._say(self.sensor),
            "/aircon/set_control_info": self._set,
        }

    def _say(self, reported: Mapping[str, str]) -> Answer:
        return (200, ",".join(["ret=OK", *(f"{key}={value}" for key, value in reported.items())]))

    def _set(self, asked: WebRequest) -> Answer:
        if not {"pow", "mode", "stemp", "shum"} <= asked.query.keys():
            return (200, "ret=PARAM NG")
        self._take(lambda: self.control.update(asked.query))
        return (200, "ret=OK,adv=")


def _fields(text: str) -> dict[str, str]:
    return dict(each.split("=") for each in text.split(","))


SOAP = '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>{}</s:Body></s:Envelope>'


def scpd(action: str, given: tuple[str, ...], reported: tuple[str, ...]) -> str:
    """Return the description of one UPnP action."""
    arguments = "".join(
        f"<argument><name>{name}</name><direction>{'in' if name in given else 'out'}</direction>"
        f"<relatedStateVariable>{name}</relatedStateVariable></argument>"
        for name in (*given, *reported)
    )
    types = {"NewActive": "boolean"}
    variables = "".join(
        f"<stateVariable><name>{name}</name><dataType>{types.get(name, 'string')}</dataType></stateVariable>"
        for name in (*given, *reported)
    )
    actions = f"<action><name>{action}</name><argumentList>{arguments}</argumentList></action>"
    space = 'xmlns="urn:schemas-upnp-org:service-1-0"' if not given else 'xmlns="urn:dslforum-org:service-1-0"'
    inside = f"<actionList>{actions}</actionList><serviceStateTable>{variables}</serviceStateTable>"
    return f"<scpd {space}>{inside}</scpd>"


class Sonos(Vendor):
    """A player, from the UPnP actions and fields in SoCo's documentation. No other player is in the group."""

    track_uri = "x-file:x"

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        self.shows = {"CurrentTransportState": "STOPPED", "CurrentVolume": "12", "CurrentMute": "0"}
        self.title = "Song"
        self.fault = ""
        parts = "<roomName>Kitchen</roomName><friendlyName>127.0.0.1 - Sonos One</friendlyName><modelName>Sonos One"
        parts += "</modelName><softwareVersion>63.2-90210</softwareVersion><serialNum>00-0E-58-AA-BB-CC:3</serialNum>"
        page = f'<root xmlns="urn:schemas-upnp-org:device-1-0"><device>{parts}</device></root>'
        paths = [f"/MediaRenderer/{name}/Control" for name in ("AVTransport", "RenderingControl")]
        self.answers = dict.fromkeys([*paths, "/ZoneGroupTopology/Control", "/DeviceProperties/Control"], self._call)
        zones, household = ("GetZoneGroupState", "ZoneGroupState"), ("GetHouseholdID", "CurrentHouseholdID")
        self.answers["/xml/ZoneGroupTopology1.xml"] = (200, scpd(zones[0], (), zones[1:]))
        self.answers["/xml/DeviceProperties1.xml"] = (200, scpd(household[0], (), household[1:]))
        self.answers["/xml/device_description.xml"] = (200, page)

    def _call(self, asked: WebRequest) -> Answer:
        service, _, action = header(asked, "SOAPACTION").strip('"').partition("#")
        if self.fault and not action.startswith("Get"):
            code = f"<UPnPError><errorCode>{self.fault}</errorCode></UPnPError>"
            return (
                500,
                SOAP.format(f"<s:Fault><faultstring>UPnPError</faultstring><detail>{code}</detail></s:Fault>"),
            )
        self._apply(action, (asked.body or b"").decode())
        reported = "".join(f"<{name}>{_text(value)}</{name}>" for name, value in self._fields(action).items())
        return (200, SOAP.format(f'<u:{action}Response xmlns:u="{service}">{reported}</u:{action}Response>'))

    def _apply(self, action: str, body: str) -> None:
        states = {"Play": "PLAYING", "Pause": "PAUSED_PLAYBACK", "Stop": "STOPPED"}
        if action in states:
            self._take(lambda: self.shows.update(CurrentTransportState=states[action]))
        for field in ("Volume", "Mute"):
            if action == f"Set{field}":
                goal = body.split(f"<Desired{field}>")[1].split("<", maxsplit=1)[0]
                self._take(lambda field=field, goal=goal: self.shows.update({f"Current{field}": goal}))  # type: ignore[misc]

    def _fields(self, action: str) -> dict[str, str]:
        if action == "GetPositionInfo":
            item = f'<item id="-1"><dc:title>{_text(self.title)}</dc:title></item>'
            spaces = (
                'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns="urn:schemas-upnp-org:metadata-1-0/DIDL-Lite/"'
            )
            reported = {"Track": "1", "TrackDuration": "0:03:00", "RelTime": "0:00:07", "TrackURI": self.track_uri}
            return {**reported, "TrackMetaData": f"<DIDL-Lite {spaces}>{item}</DIDL-Lite>"}
        if action == "GetZoneGroupState":
            where = f'UUID="RINCON_1" Location="{self.url}/xml/device_description.xml" ZoneName="Kitchen" BootSeq="7"'
            member = f"<ZoneGroupMember {where}/>"
            group = f'<ZoneGroup Coordinator="RINCON_1" ID="RINCON_1:1">{member}</ZoneGroup>'
            return {"ZoneGroupState": f"<ZoneGroupState><ZoneGroups>{group}</ZoneGroups></ZoneGroupState>"}
        if action == "GetHouseholdID":
            return {"CurrentHouseholdID": "Sonos_1"}
        rows = {"GetTransportInfo": ("CurrentTransportState",), "GetVolume": ("CurrentVolume",)}
        names = {**rows, "GetMute": ("CurrentMute",)}.get(action, ())
        more = {"CurrentTransportStatus": "OK", "CurrentSpeed": "1"} if action == "GetTransportInfo" else {}
        return {name: self.shows[name] for name in names} | more


def _text(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;")
