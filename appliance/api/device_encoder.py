"""Encodes devices as JSON, once per change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from operator import is_

import orjson
from msgspec import Struct

from appliance.clock import Clock, timestamp
from appliance.event_loop import in_steps, wait_for_short_turn
from appliance.home import events
from appliance.home.json_shapes import DEVICE_COMMANDS, DEVICE_HEAD
from appliance.home.model import Device
from appliance.home.values import to_bytes
from appliance.shrinking import shrunk


class _Kept(Struct):
    """The cached JSON of a device. `commands` is None until a client requests the commands."""

    device: Device
    whole: bytes
    commands: bytes | None


class DeviceEncoder:
    """Encodes devices as JSON, once per change. `last_seen` changes with every observation, so this field is appended
    to the cached part."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept | None] = {}
        self._last_commands = b""
        self._last: tuple[Sequence[Device], bytes] = ((), b"[]")

    def forget_removed(self, event: events.Event) -> None:
        assert isinstance(event, events.DeviceRemoved)
        if event.device_id in self._kept:
            del self._kept[event.device_id]
            self._kept = shrunk(self._kept)
        self._last = ((), b"[]")

    def encode(self, device: Device) -> bytes:
        return self._keep(device).whole

    def encode_with_commands(self, device: Device) -> bytes:
        """Return the device as JSON, with its commands and the vendor's names of its attributes."""
        return _join_two(self._parts_of(device))

    def list_parts(self, devices: Iterable[Device]) -> list[tuple[bytes, bytes]]:
        """Return the devices with their commands, for `join_parts`."""
        return [*map(self._parts_of, devices)]

    def _parts_of(self, device: Device) -> tuple[bytes, bytes]:
        kept = self._keep(device)
        if kept.commands is None:
            more = {"commands": DEVICE_COMMANDS(device.commands or ()), "labels": device.labels}
            encoded = to_bytes({key: each for key, each in more.items() if each is not None})[1:]
            if encoded != self._last_commands:
                self._last_commands = encoded
            kept.commands = self._last_commands  # such as the effects of all segments of a light strip
        return kept.whole, kept.commands

    def _keep(self, device: Device) -> _Kept:
        kept = self._kept.get(device.id)
        if kept is not None and kept.device is device:
            return kept
        is_same = kept is not None and _differ_in_last_seen(kept.device, device)
        last = b',"last_seen":"%b"}' % timestamp(device.last_seen).encode()
        head = orjson.dumps(DEVICE_HEAD(device))[:-1] if kept is None or not is_same else kept.whole[: -len(last)]
        whole = head + last
        has_same = (
            kept is not None and kept.device.commands is device.commands and kept.device.metadata is device.metadata
        )
        commands = kept.commands if kept is not None and has_same else None
        self._kept[device.id] = kept = _Kept(device, whole, commands)
        return kept

    async def encode_found(self, find: Callable[[], Sequence[Device]], clock: Clock, *, with_commands: bool) -> bytes:
        """Return the devices from `find` as a JSON array."""
        if (found := find()) is self._last[0] and not with_commands:
            return self._last[1]
        await self.prepare(found, clock, with_commands=with_commands)
        return (
            await asyncio.to_thread(join_parts, self.list_parts(find()))
            if with_commands
            else self.encode_list(find())
        )

    async def prepare(self, devices: Sequence[Device], clock: Clock, *, with_commands: bool) -> None:
        """Encode the changed devices in steps, so that other tasks continue. Then wait until the event loop has
        little other work."""
        kept, encode = self._kept, self.encode_with_commands if with_commands else self.encode
        changed = [each for each in devices if not self._has(each, with_commands=with_commands)]
        kept.update({each.id: None for each in changed if each.id not in kept})
        still_there = (each for each in changed if each.id in kept)  # lazy, because a device may disappear meanwhile
        await in_steps(clock, map(encode, still_there))
        await wait_for_short_turn()

    def _has(self, device: Device, *, with_commands: bool) -> bool:
        kept = self._kept.get(device.id)
        return kept is not None and kept.device is device and not (with_commands and kept.commands is None)

    def encode_list(self, devices: Sequence[Device]) -> bytes:
        """Return the devices as a JSON array. For the same devices, return the same bytes object."""
        if devices is not self._last[0] and not _are_same(self._last[0], devices):
            self._last = (tuple(devices), _join(map(self.encode, devices)))
        return self._last[1]


def join_parts(parts: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the JSON array of devices with their commands. Any thread may call this function."""
    return _join(map(_join_two, parts))


def _join_two(parts: tuple[bytes, bytes]) -> bytes:
    return b"%b,%b" % (parts[0][:-1], parts[1])


def _join(encoded: Iterable[bytes]) -> bytes:
    # `join` lets other threads run while it copies megabytes; `%` does not
    return b"".join((b"[", b",".join(encoded), b"]"))


def _are_same(some: Sequence[Device], others: Sequence[Device]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _differ_in_last_seen(one: Device, other: Device) -> bool:
    """Return whether the devices differ at most in `last_seen`. The registry keeps unchanged parts as the same
    objects."""
    return (
        one.attributes is other.attributes
        and one.metadata is other.metadata
        and one.info is other.info
        and one.name == other.name
        and one.alias == other.alias
        and one.kind is other.kind
        and one.room_id == other.room_id
        and one.updated_at == other.updated_at
    )
