"""A Roku TV as a device: one `Switch` whose power is a key press away."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from appliance.adapters.base import TIME_LIMIT, Adapter, Answer, Operation
from appliance.adapters.http import VendorHttp
from appliance.adapters.roku_tv.client import DeviceInfo, RokuClient
from appliance.clock import Clock
from appliance.errors import AdapterFailed
from appliance.home.commands import Command
from appliance.home.model import Kind, Observation, Report
from appliance.home.values import Value
from appliance.settings import RokuTv

KEYS: Mapping[str, str] = {"on": "PowerOn", "off": "PowerOff", "toggle": "Power"}
"""The key that each action on `power` presses."""

READ_AT = (0.0, 1.0, 2.0, 4.0)
"""Seconds after a key press at which the TV is read, until its power has changed."""

MARGIN = 0.1
"""Seconds kept back of the command's limit, so that a slow reading does not undo a press that was answered."""


class RokuAdapter(Adapter):
    """The TV behind one Roku address."""

    def __init__(self, name: str, settings: RokuTv, http: VendorHttp, clock: Clock) -> None:
        super().__init__(name, settings.poll_interval_secs, http)
        self._client = RokuClient(http)
        self._clock = clock

    async def poll(self) -> Report:
        """The TV as it describes itself."""
        return self._report(await self._client.fetch_info())

    def offers(self, command: Command) -> bool:
        """Power on, off and toggle."""
        return command.capability == "power" and command.action in KEYS

    def check(self, command: Command) -> None:
        """Nothing to refuse: no command of a TV takes a value."""

    async def command(self, device_id: str, command: Command) -> Answer:
        """Press the key and read the TV until its power changes. An answered press is a success."""
        deadline = self._clock.monotonic() + TIME_LIMIT - MARGIN
        was_on = (await self._client.fetch_info()).is_on
        wanted = {"on": True, "off": False, "toggle": not was_on}[command.action]
        await self._client.press(KEYS[command.action])
        info = await self._watch(wanted, deadline)
        return Answer(report=None if info is None else self._report(info))

    @property
    def operations(self) -> Mapping[str, Operation]:
        """`info` returns what the TV tells of itself."""
        return {"info": self._info}

    async def _info(self, _: Mapping[str, Value]) -> Value:
        return (await self._client.fetch_info()).fields

    async def _watch(self, wanted: bool, deadline: float) -> DeviceInfo | None:
        """The last reading that came before the deadline; reading ends early when the power is as wanted."""
        pressed, info = self._clock.monotonic(), None
        try:
            async with asyncio.timeout(deadline - pressed):
                for moment in READ_AT:
                    await self._clock.sleep(pressed + moment - self._clock.monotonic())
                    info = await self._read(info)
                    if info is not None and info.is_on == wanted:
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
            kind=Kind.SWITCH,
            attributes={"power": "on" if info.is_on else "off"},
            vendor_specific={
                "power_mode": info.power_mode,
                "friendly_name": info.friendly_name,
                "model_name": info.model_name,
            },
        )
        return Report(adapter=self.name, present=frozenset({device_id}), observations=(seen,))
