"""Roku's External Control Protocol, as its TVs and sticks speak it on port 8060.

Protocol: `GET /query/device-info` answers XML, `POST /keypress/<key>` presses a key of the remote control.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring
from msgspec import Struct

from appliance.adapters.device_http import HttpClient
from appliance.adapters.http_errors import HttpRefused
from appliance.errors import BadAnswer
from appliance.home.model import Info

FORBIDDEN = 403


class DeviceInfo(Struct, frozen=True, kw_only=True):
    """The answer to `device-info`; `fields` has the text of every element by its name."""

    power_mode: str | None
    friendly_name: str | None
    model_name: str | None
    fields: dict[str, str]

    @property
    def is_on(self) -> bool:
        """Whether the TV is on; a stick that answers without a power mode is."""
        return self.power_mode in (None, "PowerOn")

    @property
    def facts(self) -> Info:
        """Maker, model, firmware, serial number, and the location that its owner entered."""
        return Info(
            manufacturer=self.fields.get("vendor-name") or None,
            model=self.model_name,
            firmware=self.fields.get("software-version") or None,
            serial=self.fields.get("serial-number") or None,
            area=self.fields.get("user-device-location") or None,
            device_class="media_player",
        )

    @staticmethod
    def parse(xml: bytes) -> DeviceInfo:
        """The parsed answer to `/query/device-info`; raises `BadAnswer` for anything else."""
        root = _parse_safely(xml)
        if root.tag != "device-info":
            raise BadAnswer("answered with XML that is not a device-info")
        fields = {element.tag: (element.text or "").strip() for element in root}
        return DeviceInfo(
            power_mode=fields.get("power-mode"),
            friendly_name=fields.get("user-device-name") or fields.get("friendly-device-name") or None,
            model_name=fields.get("model-name") or None,
            fields=fields,
        )


class RokuClient:
    """One Roku address. Every method raises `Unreachable` or `BadAnswer`."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    async def fetch_info(self) -> DeviceInfo:
        """Read `device-info`, with a second try if it is not answered."""
        answer = await self._request("GET", "/query/device-info")
        try:
            return DeviceInfo.parse(answer)
        except BadAnswer as error:
            raise BadAnswer(f"{self._http.address} {error}") from None

    async def press(self, key: str) -> None:
        """Press a key, once: a press without an answer may have had its effect, so it is never repeated."""
        await self._request("POST", f"/keypress/{key}", repeat=False)

    async def _request(self, method: str, path: str, *, repeat: bool = True) -> bytes:
        try:
            return await self._http.request(method, path, repeat=repeat)
        except HttpRefused as error:
            if error.status != FORBIDDEN:
                raise
            raise BadAnswer(
                f"{self._http.address} refuses to be controlled: on the TV, open Settings > System > Advanced "
                "system settings > Control by mobile apps > Network access and choose Default or Permissive"
            ) from None


def _parse_safely(xml: bytes) -> Element:
    """The root of a document that declares no entities and no document type."""
    try:
        root: Element = fromstring(xml, forbid_dtd=True)
    except DefusedXmlException:
        raise BadAnswer("answered with XML that declares a document type, which is refused") from None
    except (ParseError, ValueError, LookupError):
        raise BadAnswer("answered with something that is not XML") from None
    return root
