"""A Roku TV as a device: one `Switch`, switched by key presses.

Protocol: Roku's external control protocol on port 8060. `GET /query/device-info` answers XML, `POST /keypress/<key>`
presses a key of the remote control.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring
from msgspec import Struct

from appliance.adapters.base import CommandResult, Operation
from appliance.adapters.http_access import HttpRefused
from appliance.adapters.polling import PollingAdapter
from appliance.errors import AdapterFailed, BadAnswer
from appliance.home.commands import Command, CommandSpec, check_offered
from appliance.home.model import DeviceKind, Info, Observation, Report
from appliance.home.values import Value

_KEYS: Mapping[str, str] = {"on": "PowerOn", "off": "PowerOff", "toggle": "Power"}
"""The key that each action on `power` presses."""

TV_COMMANDS = (CommandSpec(capability="power", actions=tuple(_KEYS)),)
"""What every TV takes."""

READ_AT = (0.0, 1.0, 2.0, 4.0)
"""Seconds after a key press at which the TV is read, until its power has changed."""

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


class RokuAdapter(PollingAdapter):
    """The TV behind one Roku address."""

    async def poll(self) -> Report:
        """The TV as it describes itself."""
        return self._report(await self._fetch_info())

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Press the key and read the TV until its power changes. An answered press is a success."""
        check_offered(device_id, TV_COMMANDS, command)
        was_on = (await self._fetch_info()).is_on
        expected = {"on": True, "off": False, "toggle": not was_on}[command.action]
        await self._request("POST", f"/keypress/{_KEYS[command.action]}", repeat=False)
        info = await self._watch(expected)
        return CommandResult(report=None if info is None else self._report(info))

    @property
    def operations(self) -> Mapping[str, Operation]:
        """`info` returns every field of `device-info`."""
        return {"info": self._info}

    async def _info(self, _: Mapping[str, Value]) -> Value:
        return (await self._fetch_info()).fields

    async def _watch(self, expected: bool) -> DeviceInfo | None:
        """The last reading within the command's limit; reading ends early when the power is the expected one."""
        pressed, info = self.clock.monotonic(), None
        with suppress(asyncio.CancelledError):  # when the limit is over, that does not fail a press that was answered
            for moment in READ_AT:
                await self.clock.sleep(pressed + moment - self.clock.monotonic())
                info = await self._read(info)
                if info is not None and info.is_on == expected:
                    break
        return info

    async def _read(self, previous: DeviceInfo | None) -> DeviceInfo | None:
        try:
            return await self._fetch_info()
        except AdapterFailed:
            return previous

    async def _fetch_info(self) -> DeviceInfo:
        """Read `device-info`, with a second try if it is not answered."""
        answer = await self._request("GET", "/query/device-info")
        try:
            return DeviceInfo.parse(answer)
        except BadAnswer as error:
            raise BadAnswer(f"{self.http.address} {error}") from None

    async def _request(self, method: str, path: str, *, repeat: bool = True) -> bytes:
        """The answer. A press without one may have had its effect, so it is never repeated."""
        try:
            return await self.http.request(method, path, repeat=repeat)
        except HttpRefused as error:
            if error.status != FORBIDDEN:
                raise
            raise BadAnswer(
                f"{self.http.address} refuses to be controlled: on the TV, open Settings > System > Advanced "
                "system settings > Control by mobile apps > Network access and choose Default or Permissive"
            ) from None

    def _report(self, info: DeviceInfo) -> Report:
        device_id = f"{self.name}:tv"
        seen = Observation(
            device_id=device_id,
            kind=DeviceKind.SWITCH,
            attributes={"power": "on" if info.is_on else "off"},
            vendor_specific={
                "power_mode": info.power_mode,
                "friendly_name": info.friendly_name,
                "model_name": info.model_name,
            },
            name=info.friendly_name,
            info=info.facts,
            commands=TV_COMMANDS,
        )
        return Report(adapter=self.name, present=frozenset({device_id}), observations=(seen,))


build = RokuAdapter.of
"""Makes the adapter of a section."""


def _parse_safely(xml: bytes) -> Element:
    """The root of a document that declares no entities and no document type."""
    try:
        root: Element = fromstring(xml, forbid_dtd=True)
    except DefusedXmlException:
        raise BadAnswer("answered with XML that declares a document type, which is refused") from None
    except (ParseError, ValueError, LookupError):
        raise BadAnswer("answered with something that is not XML") from None
    return root
