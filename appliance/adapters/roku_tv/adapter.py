"""A Roku TV: one `Switch` device, which key presses switch on and off.

The adapter uses Roku's External Control Protocol on port 8060. `GET /query/device-info` returns XML, and `POST
/keypress/<key>` presses a key of the remote control.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from appliance.adapters.base import AdapterContext, CommandResult, Operation
from appliance.adapters.confirmation import read_until, secs_to_confirm
from appliance.adapters.device_http.client import HttpClient
from appliance.adapters.device_http.errors import HttpRefused
from appliance.adapters.device_xml import parse_at_once_or_apart, parse_xml
from appliance.adapters.polling import PollingAdapter
from appliance.adapters.roku_tv.kind import RokuTv
from appliance.errors import AdapterFailed, BadAnswer, Invalid, Unanswered, Unreachable, Unreadable
from appliance.home.command_specs import CommandSpec, check_offered
from appliance.home.commands import Command
from appliance.home.model import DeviceKind, Info, Observation, Report
from appliance.home.values import Value
from appliance.tables.addresses import is_numeric

_KEYS: Mapping[str, str] = {"on": "PowerOn", "off": "PowerOff", "toggle": "Power"}
"""Keys of the remote control, by action on `power`."""

TV_COMMANDS = (CommandSpec(capability="power", actions=tuple(_KEYS)),)
"""Commands that every TV accepts."""

READ_WITHIN_SECS, READ_PAUSES_SECS = 4.0, (1.0, 1.0, 2.0)
"""The time limit in which the power must change after a key press, and the pauses between readings."""

GONE = "PowerOff"
"""Power mode of a TV that left the network after it was switched off."""

FORBIDDEN = 403


class DeviceInfo(Struct, frozen=True, kw_only=True):
    """The response to `device-info`. `fields` has the text of each element by name."""

    power_mode: str | None
    friendly_name: str | None
    model_name: str | None
    fields: dict[str, str]

    @property
    def is_on(self) -> bool:
        """Whether the TV is on. A stick without a power mode is always on.

        Any other mode counts as off. A TV that is on reports only `PowerOn`, but the mode of a TV in standby depends
        on the model: `Ready`, `DisplayOff`, or `Headless`.
        """
        return self.power_mode in (None, "PowerOn")

    @property
    def facts(self) -> Info:
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
        """Parse the response to `/query/device-info`. Raise `BadAnswer` on failure."""
        try:
            root = parse_xml(xml)
        except Invalid as fault:
            raise BadAnswer(f"answered with {fault}") from None
        if root.tag != "device-info":
            raise BadAnswer("answered with XML that is not a device-info document")
        fields = {element.tag: (element.text or "").strip() for element in root}
        return DeviceInfo(
            power_mode=fields.get("power-mode"),
            friendly_name=fields.get("user-device-name") or fields.get("friendly-device-name") or None,
            model_name=fields.get("model-name") or None,
            fields=fields,
        )


class RokuAdapter(PollingAdapter):
    """Polls and commands the TV at one Roku address. `hint` is appended to the error if the TV refuses commands."""

    def __init__(
        self,
        context: AdapterContext,
        http: HttpClient,
        poll_interval: float,
        max_silence_secs: float | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(context, http, poll_interval, max_silence_secs)
        self._hint = hint

    async def poll(self) -> Report:
        return self._report(await self._fetch_info())

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Press the key, and read the TV until its power changes. The command succeeds if the TV accepts the key
        press."""
        began = self.clock.monotonic()
        command = check_offered(device_id, TV_COMMANDS, command)
        before = await self._fetch_info_to(command, device_id)
        goal = {"on": True, "off": False, "toggle": not before.is_on}[command.action]
        with suppress(Unreadable, Unanswered):
            await self._request("POST", f"/keypress/{_KEYS[command.action]}", repeat=False)
        readings = await self._watch(goal, began)
        if not goal and readings and readings[-1] is None:
            # Without Fast TV Start, a TV leaves the network when it is off.
            return CommandResult(report=self._report(replace(before, power_mode=GONE)))
        info = next((each for each in reversed(readings) if each is not None), None)
        return CommandResult(report=None if info is None else self._report(info))

    async def _fetch_info_to(self, command: Command, device_id: str) -> DeviceInfo:
        """Read the TV before the command. The error explains why a TV that is off can be unreachable."""
        try:
            return await self._fetch_info()
        except Unreachable as error:
            known = self.publish.find(device_id)
            if command.action == "off" or known is None or known.attributes.get("power") != "off":
                raise
            raise Unreachable(f"{error}. To reach the TV while it is off, enable Fast TV Start on the TV") from None

    @property
    def operations(self) -> Mapping[str, Operation]:
        """The operation `info` returns all fields of `device-info`."""
        return {"info": self._info}

    async def _info(self, _: Mapping[str, Value]) -> Value:
        return (await self._fetch_info()).fields

    async def _watch(self, goal: bool, began: float) -> list[DeviceInfo | None]:
        """Read the TV until its power is as expected, within the time of the command that started at `began`. Return
        all readings.

        An unanswered reading is None. Invalid answers are omitted.
        """
        readings: list[DeviceInfo | None] = []

        async def read() -> DeviceInfo | None:
            try:
                readings.append(await self._fetch_info())
            except (Unreachable, Unanswered):
                readings.append(None)
            except asyncio.CancelledError:  # the command timed out after the TV had answered the key press
                readings.append(None)
                raise
            except AdapterFailed:
                return None
            return readings[-1]

        secs_left = began + self.command_secs - self.clock.monotonic()
        with suppress(asyncio.CancelledError):
            await read_until(
                self.clock,
                read,
                lambda info: info is not None and info.is_on == goal,
                within=secs_to_confirm(READ_WITHIN_SECS, secs_left),
                pauses=READ_PAUSES_SECS,
            )
        return readings

    async def _fetch_info(self) -> DeviceInfo:
        """Read `device-info`. An unanswered request is repeated once."""
        answer = await self._request("GET", "/query/device-info")
        try:
            return await parse_at_once_or_apart(DeviceInfo.parse, answer)
        except BadAnswer as error:
            raise BadAnswer(f"{self.http.address} {error}") from None

    async def _request(self, method: str, path: str, *, repeat: bool = True) -> bytes:
        """Return the response. An unanswered key press is never repeated, because the TV may already have accepted
        it."""
        try:
            return await self.http.request(method, path, repeat=repeat)
        except HttpRefused as error:
            if error.status != FORBIDDEN:
                raise
            raise BadAnswer(
                f"{self.http.address} refuses to be controlled; on the TV, open Settings > System > Advanced "
                "system settings > Control by mobile apps > Network access and choose Enabled or Permissive (on an "
                "older TV, Default)" + self._hint
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


def build(settings: RokuTv, context: AdapterContext) -> RokuAdapter:
    http = HttpClient(context.open_session(), settings.base_url, context.clock, sends_address=True)
    is_named = not is_numeric(settings.ip_address)
    hint = (
        f". If one of these is already set, use the TV's IP address instead of {settings.ip_address}"
        if is_named
        else ""
    )
    return RokuAdapter(context, http, settings.poll_interval_secs, settings.max_silence_secs, hint)
