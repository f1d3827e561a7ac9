"""Simulated vendors for those bundled kinds that are read-only or that answer questions. Each docstring names the
source of the answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from graphql import build_schema, graphql_sync

from appliance.adapters.lua_kinds.web_request import WebRequest
from appliance.clock import Clock
from tests.adapters.lua_kinds.simulators import SOAP, scpd
from tests.adapters.lua_kinds.vendor import Answer, Vendor, header

ANNA, BEN = "AA:BB:CC:DD:EE:FF", "11:22:33:44:55:66"


def _now() -> int:
    return int(Clock().now().timestamp())


class HomeWizardMeter(Vendor):
    """A P1 meter, from HomeWizard's published API v1. The gas meter has a separate telegram."""

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        about = {"product_type": "HWE-P1", "product_name": "P1 meter", "serial": "3c39e7aabbcc"}
        data = {"wifi_strength": 84, "smr_version": 50, "meter_model": "ISKRA  2M550T-101", "active_tariff": 2}
        data |= {"total_power_import_kwh": 13779.338, "total_power_import_t1_kwh": 10830.511}
        data |= {"total_power_import_t2_kwh": 2948.827, "total_power_export_kwh": 0, "active_power_w": -543}
        data |= {"active_voltage_l1_v": 230.1, "active_current_l1_a": -4, "total_gas_m3": 2569.646}
        gas = {"unique_id": "4730", "type": "gas_meter", "timestamp": 210606140010, "value": 2569.646, "unit": "m3"}
        self.data: dict[str, Any] = {**data, "external": [gas]}
        about |= {"firmware_version": "5.18", "api_version": "v1"}
        self.answers = {"/api": about, "/api/v1/data": self.data}


class HomeWizardSecond(Vendor):
    """A P1 meter, from HomeWizard's published API v2 (`/api`, `/api/measurement`, `/api/user`). It creates a user
    while its button is pressed."""

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        self.token = "0123456789ABCDEF0123456789ABCDEF"
        self.is_pressed = False
        self.about = {"product_name": "P1 Meter", "product_type": "HWE-P1", "serial": "5c2fafaabbcc"}
        self.about |= {"firmware_version": "6.00", "api_version": "2.0.0"}
        self.data: dict[str, Any] = {"protocol_version": 50, "timestamp": "2024-06-28T14:12:34", "tariff": 2}
        self.data |= {"energy_import_t1_kwh": 10830.511, "energy_import_t2_kwh": 2948.827}
        self.data |= {"energy_export_kwh": 0, "power_w": -543, "voltage_l1_v": 230, "current_a": 6}
        gas = [("2024-06-28T14:00:00", 2569.646), ("2023-06-28T14:00:00", 17.5)]
        rows = [{"type": "gas_meter", "timestamp": at, "value": value, "unit": "m3"} for at, value in gas]
        self.data["external"] = rows
        self.answers = {
            "/api": lambda asked: self._of_user(asked, self.about),
            "/api/measurement": lambda asked: self._of_user(asked, self.data),
            "/api/user": self._add_user,
        }

    def _of_user(self, asked: WebRequest, found: Answer) -> Answer:
        return found if header(asked, "X-Api-Version") == "2" else (401, '{"error": "user:unauthorized"}')

    def _add_user(self, asked: WebRequest) -> Answer:
        assert asked.json == {"name": "local/lares"} and header(asked, "X-Api-Version") == "2"
        if not self.is_pressed:
            return 403, '{"error": "user:creation-not-enabled"}'
        return {"token": self.token, "name": "local/lares"}


class Fronius(Vendor):
    """An inverter, from the answers in PyFronius's tests (Solar API v1). `site` and `inverter` are the two parts of
    the answer."""

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        self.site: dict[str, Any] = {"Mode": "bidirectional", "Meter_Location": "grid", "P_Akku": None}
        self.site |= {"P_PV": 3520.4, "P_Grid": -1200.0, "P_Load": -2320.4, "rel_Autonomy": 100, "E_Day": 5100.0}
        self.site |= {"E_Year": 12400.100586, "E_Total": 26213502}
        self.inverter: dict[str, Any] = {"DT": 123, "P": 3520, "SOC": 61.6}
        status = {"Code": 0, "Reason": "", "UserMessage": ""}
        self.answers = {
            "/solar_api/GetAPIVersion.cgi": {"APIVersion": 1, "BaseURL": "/solar_api/v1/"},
            "/solar_api/v1/GetPowerFlowRealtimeData.fcgi": {
                "Head": {"RequestArguments": {}, "Status": status, "Timestamp": "2019-01-10T23:33:12+01:00"},
                "Body": {"Data": {"Site": self.site, "Inverters": {"1": self.inverter}}},
            },
        }


TIBBER_SCHEMA = build_schema("""
type Query { viewer: Viewer }
type Viewer { name: String userId: String websocketSubscriptionUrl: String homes: [Home] home(id: ID!): Home }
type Home { id: ID appNickname: String timeZone: String
  currentSubscription: Subscription subscriptions: [Subscription] features: Features address: Address
  meteringPointData: MeteringPoint owner: LegalEntity }
type Subscription { id: ID status: String statusReason: String validFrom: String validTo: String
  priceInfo(resolution: Resolution = HOURLY): PriceInfo }
enum Resolution { HOURLY QUARTER_HOURLY }
type PriceInfo { current: Price today: [Price] tomorrow: [Price] }
type Price { total: Float energy: Float tax: Float startsAt: String currency: String level: String }
type Features { realTimeConsumptionEnabled: Boolean }
type Address { address1: String address2: String address3: String city: String postalCode: String country: String
  latitude: String longitude: String }
type MeteringPoint { consumptionEan: String energyTaxType: String estimatedAnnualConsumption: Int gridCompany: String
  productionEan: String vatType: String }
type LegalEntity { name: String isCompany: Boolean language: String contactInfo: ContactInfo }
type ContactInfo { email: String mobile: String }
""")


class OpenMeteo(Vendor):
    """Weather, from Open-Meteo's captured answers. An answer has only the parts and fields that the request names.

    Times are numbers if the request asks for numbers, otherwise texts.
    """

    def __init__(self, rain: float = 0.6, **base: Any) -> None:
        super().__init__({"/v1/forecast": self._forecast}, **base)
        self.rain(rain)

    def rain(self, millimetres: float) -> None:
        now = _now()
        quarters = [now // 900 * 900 + 900 * number for number in range(8)]
        current = {"time": now, "interval": 900, "temperature_2m": 11.5, "apparent_temperature": 9.8}
        current |= {"relative_humidity_2m": 74, "precipitation": 0.0, "weather_code": 61, "cloud_cover": 97}
        current |= {"pressure_msl": 1012.3, "wind_speed_10m": 14.2, "wind_direction_10m": 210, "wind_gusts_10m": 30.2}
        day: dict[str, Any] = {"time": [now // 86400 * 86400], "temperature_2m_max": [13.0]}
        day |= {"temperature_2m_min": [None], "uv_index_max": [1.35]}
        soon = {"time": quarters, "precipitation": [millimetres / 4] * 8}
        self.parts: dict[str, dict[str, Any]] = {"current": current, "minutely_15": soon, "daily": day}

    def _forecast(self, asked: WebRequest) -> Answer:
        place = {"latitude": 52.52, "longitude": 13.42, "generationtime_ms": 0.1, "utc_offset_seconds": 0}
        answer: dict[str, Any] = {**place, "timezone": "GMT", "timezone_abbreviation": "GMT", "elevation": 38.0}
        for name, part in self.parts.items():
            if name in asked.query:
                fields = {"time", "interval", *asked.query[name].split(",")}
                answer[name] = {field: value for field, value in part.items() if field in fields}
                if asked.query.get("timeformat") != "unixtime":
                    answer[name]["time"] = _in_texts(part["time"], only_date=name == "daily")
        return answer


def _in_texts(times: Any, *, only_date: bool) -> Any:
    if isinstance(times, list):
        return [_in_texts(each, only_date=only_date) for each in times]
    return datetime.fromtimestamp(times, UTC).strftime("%Y-%m-%d" if only_date else "%Y-%m-%dT%H:%M")


class Tibber(Vendor):
    """Prices, from Tibber's published GraphQL schema: one home with a subscription, and one without.

    The schema validates each query, so unknown fields are rejected.
    """

    def __init__(self, **base: Any) -> None:
        super().__init__({"/v1-beta/gql": self._query}, **base)
        hours = [{"total": price, "startsAt": f"2026-11-23T{n:02}:00"} for n, price in enumerate((0.3, 0.1, 0.2))]
        self.prices: dict[str, Any] = {
            "current": {**hours[2], "currency": "EUR", "level": "NORMAL"},
            "today": hours,
            "tomorrow": [],
        }
        self.token = ""

    def _query(self, asked: WebRequest) -> Answer:
        if self.token and header(asked, "Authorization") != f"Bearer {self.token}":
            fault = {"message": "Context creation failed: invalid token", "extensions": {"code": "UNAUTHENTICATED"}}
            return (401, json.dumps({"errors": [fault]}))
        running = [{"id": "s1", "status": "running"}]
        home: dict[str, Any] = {"id": "h1", "appNickname": "House", "subscriptions": running}
        home |= {"currentSubscription": {"priceInfo": self.prices, "status": "running"}}
        hut: dict[str, Any] = {"id": "h2", "appNickname": "Hut", "subscriptions": [], "currentSubscription": None}
        viewer = {"name": "Anna", "homes": [home, hut], "home": home}
        query = asked.json["query"] if asked.json else parse_qs((asked.body or b"").decode())["query"][0]
        return {"data": graphql_sync(TIBBER_SCHEMA, query, {"viewer": viewer}).data}


class Awattar(Vendor):
    """Prices in cents, from aWATTar's published API: for the current hour, and for a day before and after it."""

    def __init__(self, now: float = 8.05, others: float = 4.0, **base: Any) -> None:
        super().__init__(**base)
        self.set_prices(now, others)

    def set_prices(self, now: float, others: float) -> None:
        self.answers = {"/v1/marketdata": lambda _: self._prices(now, others)}

    def _prices(self, now: float, others: float) -> Answer:
        hour = _now() // 3600 * 3600
        rows = [
            {
                "start_timestamp": (hour + 3600 * n) * 1000,
                "end_timestamp": (hour + 3600 * (n + 1)) * 1000,
                "marketprice": (now if n == 0 else others) * 10,
                "unit": "Eur/MWh",
            }
            for n in range(-24, 25)
        ]
        return {"object": "list", "data": rows, "url": "/at/v1/marketdata"}


CONTROL = 'xmlns="urn:dslforum-org:control-1-0"'


def upnp_error(code: int, description: str) -> str:
    """Return UPnP's error page."""
    detail = f"<errorCode>{code}</errorCode><errorDescription>{description}</errorDescription>"
    return SOAP.format(f"<s:Fault><detail><UPnPError {CONTROL}>\n{detail}\n</UPnPError></detail></s:Fault>")


class FritzBox(Vendor):
    """A FRITZ!Box, from AVM's description of TR-064's service Hosts. `active` maps each host's MAC address to `1`
    (active) or `0`."""

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        self.active = {ANNA: "1", BEN: "0"}
        self.answers = {"/upnp/control/hosts": self._entry, "/tr64desc.xml": (200, DESCRIPTION)}
        fields = ("NewIPAddress", "NewActive", "NewHostName")
        self.answers["/igddesc.xml"] = (200, DESCRIPTION.partition("<serviceList>")[0] + "</device></root>")
        self.answers["/hostsSCPD.xml"] = (200, scpd("GetSpecificHostEntry", ("NewMACAddress",), fields))

    def _entry(self, asked: WebRequest) -> Answer:
        found = [active for address, active in self.active.items() if address in (asked.body or b"").decode()]
        if not found:
            return (500, upnp_error(714, "NoSuchEntryInArray"))
        fields = "<NewIPAddress>192.168.178.20</NewIPAddress><NewAddressSource>DHCP</NewAddressSource>"
        fields += "<NewLeaseTimeRemaining>0</NewLeaseTimeRemaining><NewInterfaceType>802.11</NewInterfaceType>"
        fields += f"<NewActive>{found[0]}</NewActive><NewHostName>phone</NewHostName>"
        name = "u:GetSpecificHostEntryResponse"
        return (200, SOAP.format(f'<{name} xmlns:u="urn:dslforum-org:service:Hosts:1">{fields}</{name}>'))


DESCRIPTION = """<?xml version="1.0"?>
<root xmlns="urn:dslforum-org:device-1-0"><device>
<deviceType>urn:dslforum-org:device:InternetGatewayDevice:1</deviceType>
<friendlyName>FRITZ!Box 7590</friendlyName><modelName>FRITZ!Box 7590</modelName><serviceList><service>
<serviceType>urn:dslforum-org:service:Hosts:1</serviceType>
<serviceId>urn:LanDeviceHosts-com:serviceId:Hosts1</serviceId>
<controlURL>/upnp/control/hosts</controlURL><eventSubURL>/upnp/control/hosts</eventSubURL>
<SCPDURL>/hostsSCPD.xml</SCPDURL>
</service></serviceList></device></root>"""


class Ollama(Vendor):
    """A language model that answers with `reply`, according to Ollama's API documentation."""

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        self.reply: Any = {
            "model": "llama3.2",
            "created_at": "2023-08-04T19:22:45.499127Z",
            "message": {"role": "assistant", "content": "yes"},
            "done": True,
        }
        self.answers = {
            "/api/tags": {"models": [{"name": "llama3.2:latest", "model": "llama3.2:latest", "size": 2019393189}]},
            "/api/chat": lambda asked: self.reply,
            "/api/generate": lambda asked: {**self.reply, "response": self.reply["message"]["content"]},
        }
