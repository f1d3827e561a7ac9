"""A Roku TV as a device: one `Switch`, switched by key presses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from appliance.adapters.base import COMMAND_TIMEOUT_SECS, AdapterContext, CommandResult, Operation
from appliance.adapters.device_http import HttpClient
from appliance.adapters.polling import PollingAdapter
from appliance.adapters.roku_tv.client import DeviceInfo, RokuClient
from appliance.errors import AdapterFailed
from appliance.home.commands import Command, CommandSpec, check_offered
from appliance.home.model import DeviceKind, Observation, Report
from appliance.home.values import Value

_KEYS: Mapping[str, str] = {"on": "PowerOn", "off": "PowerOff", "toggle": "Power"}
"""The key that each action on `power` presses."""

TV_COMMANDS = (CommandSpec(capability="power", actions=tuple(_KEYS)),)
"""What every TV takes."""

READ_AT = (0.0, 1.0, 2.0, 4.0)
"""Seconds after a key press at which the TV is read, until its power has changed."""

MARGIN = 0.1
"""Seconds before the command's limit at which reading ends, so that it cannot fail a press that was answered."""


class RokuAdapter(PollingAdapter):
    """The TV behind one Roku address."""

    def __init__(self, context: AdapterContext, http: HttpClient, poll_interval: float) -> None:
        super().__init__(context, http, poll_interval)
        self._client = RokuClient(http)

    async def poll(self) -> Report:
        """The TV as it describes itself."""
        return self._report(await self._client.fetch_info())

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Press the key and read the TV until its power changes. An answered press is a success."""
        check_offered(device_id, TV_COMMANDS, command)
        deadline = self.clock.monotonic() + COMMAND_TIMEOUT_SECS - MARGIN
        was_on = (await self._client.fetch_info()).is_on
        expected = {"on": True, "off": False, "toggle": not was_on}[command.action]
        await self._client.press(_KEYS[command.action])
        info = await self._watch(expected, deadline)
        return CommandResult(report=None if info is None else self._report(info))

    @property
    def operations(self) -> Mapping[str, Operation]:
        """`info` returns every field of `device-info`."""
        return {"info": self._info}

    async def _info(self, _: Mapping[str, Value]) -> Value:
        return (await self._client.fetch_info()).fields

    async def _watch(self, expected: bool, deadline: float) -> DeviceInfo | None:
        """The last reading before the deadline; reading ends early when the power is the expected one."""
        pressed, info = self.clock.monotonic(), None
        try:
            async with asyncio.timeout(deadline - pressed):
                for moment in READ_AT:
                    await self.clock.sleep(pressed + moment - self.clock.monotonic())
                    info = await self._read(info)
                    if info is not None and info.is_on == expected:
                        break
        except TimeoutError:
            pass
        return info

    async def _read(self, previous: DeviceInfo | None) -> DeviceInfo | None:
        try:
            return await self._client.fetch_info()
        except AdapterFailed:
            return previous

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
