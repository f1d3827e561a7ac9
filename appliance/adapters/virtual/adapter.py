"""Virtual devices. A command sets the device's state, and returns after the state is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from appliance.adapters.base import Adapter, AdapterContext, CommandResult, HookRequest, Operation
from appliance.adapters.virtual.kind import Virtual, VirtualDevice
from appliance.byte_budget import estimate_json_memory
from appliance.errors import Invalid, MalformedRequest, NotFound
from appliance.event_loop import in_steps, wait_for_short_turn
from appliance.home.command_effects import changes_of
from appliance.home.commands import Command
from appliance.home.model import Device, DeviceKind, Info, Observation
from appliance.home.observations import check_event
from appliance.home.texts import DEVICE_HOOK_PREFIX
from appliance.home.values import Value, to_bytes
from appliance.tables.checks import format_value, nearest, suggest

MAX_SMALL_BYTES, MAX_LARGE_BYTES = 1 << 10, 4 << 20
"""Values up to the first size, as JSON, are always accepted. All larger values of a section need at most the second
number of bytes in memory."""

_OBSERVED = ("device_id", "attributes", "event", "data")


class VirtualAdapter(Adapter):
    """The virtual devices of one section. When the adapter starts, the last attributes of the devices are
    restored."""

    concurrency = 16  # concurrent commands share one write to the card
    takes_many = True

    def __init__(self, context: AdapterContext, settings: Virtual) -> None:
        super().__init__(context)
        self._record = context.record
        self._devices = {f"{self.name}:{each.id}": each for each in settings.devices}
        self._have_devices = asyncio.Event()
        self._storing: dict[str, int] = {}  # bytes of large values that are being stored, by device

    async def run(self) -> None:
        await in_steps(self.clock, self._publishing(self.publish.list_devices()))
        self._have_devices.set()
        await self.publish.full_list((), present=self._devices)
        self.publish.answered()
        self.publish.started()
        await asyncio.Event().wait()

    def _publishing(self, known: Mapping[str, Device]) -> Iterator[None]:
        for id_, device in self._devices.items():
            self.publish.device(self._observation(id_, device, known[id_].attributes if id_ in known else {}))
            yield

    def _observation(self, device_id: str, device: VirtualDevice, before: Mapping[str, Value]) -> Observation:
        kept = {name: value for name, value in before.items() if _fits(device, name, value)}
        return Observation(
            device_id=device_id,
            kind=DeviceKind(device.kind),
            attributes={**device.attributes, **kept},
            vendor_specific={"virtual": True},
            name=device.name,
            info=Info(device_class=device.class_),
            commands=device.commands(),
        )

    async def command_many(self, device_ids: Sequence[str], command: Command) -> Sequence[CommandResult]:
        """Set the attributes of the devices. Raise `StoreFailed` if the change cannot be stored. In that case, no
        device has changed."""
        await self._have_devices.wait()
        changes = {}
        for device_id in device_ids:
            found = self.publish.find(device_id)
            changes[device_id] = {} if found is None else changes_of(command, found.attributes)
        await self._show(changes)
        return [CommandResult() for _ in device_ids]

    @property
    def operations(self) -> Mapping[str, Operation]:
        """The operation `observe` takes `device_id`, `attributes?`, `event?`, and `data?`. An observation has the
        same effect as a report from hardware."""
        return {"observe": self._observe}

    @property
    def hooks(self) -> Collection[str]:
        """One hook per device: `device:` followed by its id."""
        return frozenset(DEVICE_HOOK_PREFIX + device_id for device_id in self._devices)

    async def hook(self, request: HookRequest) -> None:
        """Run `observe` for the hook's device. If there is no body, the query contains the fields, as in
        `?event=single`."""
        stated = request.query if request.data is None and not request.body else request.data
        if not isinstance(stated, Mapping) or not set(stated) <= set(_OBSERVED[1:]):
            raise MalformedRequest(
                "the hook of a virtual device accepts an object with only attributes, event, and data"
            )
        await self._observe({"device_id": request.hook.removeprefix(DEVICE_HOOK_PREFIX), **stated})

    async def _observe(self, payload: Mapping[str, Value]) -> Value:
        if unknown := [name for name in payload if name not in _OBSERVED]:
            near = nearest(str(unknown[0]), _OBSERVED)
            hint = suggest(near, f"use {', '.join(_OBSERVED)}")
            raise Invalid(f"the operation observe has no field {format_value(unknown[0])}{hint}")
        device_id, attributes, event = (payload.get(name) for name in _OBSERVED[:3])
        if not isinstance(device_id, str):
            raise MalformedRequest(
                f'the operation observe needs a device_id like "{next(iter(self._devices), "virtual:door")}"'
            )
        if attributes is None and event is None:
            raise MalformedRequest("the operation observe needs attributes, an event, or both")
        device = self._device(device_id)
        await wait_for_short_turn()  # the check of hundreds of attributes takes milliseconds
        shown, happened = _check_all(device, attributes, event, payload.get("data"))
        await self._have_devices.wait()
        held = await self.gate.acquire([device_id])
        try:
            await self._show({device_id: shown})
            if happened is not None:
                self.publish.event(device_id, *happened)
        finally:
            self.gate.release(held)
        return None

    def _device(self, device_id: str) -> VirtualDevice:
        if device_id not in self._devices:
            raise NotFound("device", device_id)
        return self._devices[device_id]

    async def _show(self, changes: Mapping[str, Mapping[str, Value]]) -> None:
        now, found = self.clock.now(), {each: self.publish.find(each) for each in changes}
        different = [
            replace(device, attributes={**device.attributes, **changes[id_]}, updated_at=now)
            for id_, device in found.items()
            if device is not None and any(device.attributes.get(name) != each for name, each in changes[id_].items())
        ]
        large = dict[str, int]()
        if any(_large_bytes(changes[each.id]) for each in different):
            large = {each.id: _large_bytes(each.attributes) for each in different}
            self._check_sizes(large)
        self._storing |= large
        try:
            if different:
                await self._record(different)
                await wait_for_short_turn()  # one write may end many calls
            await in_steps(self.clock, self._showing(changes, now))
        finally:
            for device_id in large:
                self._storing.pop(device_id, None)

    def _check_sizes(self, changed: dict[str, int]) -> None:
        """Raise `Invalid` if these sizes of devices would make the large values of the section grow beyond the
        limit."""
        shown = {each.id: _large_bytes(each.attributes) for each in self.publish.list_devices().values()}
        before = shown | self._storing
        if sum((before | changed).values()) > max(MAX_LARGE_BYTES, sum(before.values())):
            raise Invalid(
                f"all values of more than {MAX_SMALL_BYTES} bytes in [adapters.{self.name}] would need more"
                f" than {MAX_LARGE_BYTES >> 20} MiB of memory; shorten a value first"
            )

    def _showing(self, changes: Mapping[str, Mapping[str, Value]], at: datetime) -> Iterator[None]:
        for device_id, attributes in changes.items():
            self.publish.attributes(device_id, attributes, at)
            yield


def _check_all(
    device: VirtualDevice, attributes: Value, event: Value, data: Value
) -> tuple[dict[str, Value], tuple[str, dict[str, Value]] | None]:
    """Return the valid attributes and event of an observation. Raise `Invalid` with every fault."""
    shown: dict[str, Value] = {}
    happened, faults = None, []
    try:
        if attributes is not None and not isinstance(attributes, Mapping):
            raise Invalid(f"attributes must be an object, not {format_value(attributes)}")
        shown = device.check(attributes or {})
    except Invalid as fault:
        faults.append(str(fault))
    try:
        if event is not None:
            happened = check_event(event, {} if data is None else data)
    except Invalid as fault:
        faults.append(str(fault))
    if faults:
        raise Invalid("; and ".join(faults))
    return shown, happened


def _large_bytes(attributes: Mapping[str, Value]) -> int:
    """Return the memory of the values that are larger than `MAX_SMALL_BYTES`."""
    encoded = (to_bytes(each) for each in attributes.values() if isinstance(each, str | list | dict))
    return sum(estimate_json_memory(each) for each in encoded if len(each) > MAX_SMALL_BYTES)


def _fits(device: VirtualDevice, name: str, value: Value) -> bool:
    """Return whether the current configuration allows the stored value."""
    try:
        return bool(device.check({name: value}))
    except Invalid:
        return False


def build(settings: Any, context: AdapterContext) -> VirtualAdapter:
    return VirtualAdapter(context, settings)
