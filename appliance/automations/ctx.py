"""The implementation of `ctx` methods in the hub. `lua_worker/ctx_methods.py` lists the methods."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import orjson

from appliance.adapters.dispatch import Dispatcher, Status
from appliance.automations.ctx_arguments import (
    check_notification,
    check_payload,
    check_sleep,
    check_snapshot,
    parse_device_ids,
    parse_is_durable,
    parse_wait,
)
from appliance.automations.environment import Environment
from appliance.clock import Clock
from appliance.errors import Invalid, LaresError, NotFound, UnfitValue, Unsupported
from appliance.event_loop import in_steps
from appliance.history.execution_history import ExecutionEntry, ExecutionStatus
from appliance.home.bus import Bus
from appliance.home.command_specs import CommandSpec, check_device_range
from appliance.home.commands import Command
from appliance.home.events import DeviceStateChanged, Event
from appliance.home.json_shapes import DEVICE, GROUP, ROOM
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.home.texts import MAX_ID_CHARS
from appliance.home.values import Value, to_bytes
from appliance.lua.running.context import Context, CtxFunction
from appliance.tables.json_schema import Shape

log = logging.getLogger("notify")

COLORS = ("color_temperature", "color_xy", "color_hs", "color_rgb", "color_hex")
"""A light's colour attributes. `ctx:restore` restores the first attribute in this list that the light reported."""


_Find = Callable[[str], Any]

RunScene = Callable[[str, Context], Awaitable[ExecutionEntry]]


class CtxMethods:
    """Implements `ctx` for scenes and automations.

    `run_scene` runs a scene until it ends; its second argument is the context of the execution that waits.
    `targets` contains the `<section>:<operation>` targets of `ctx:notify`; if there are no targets, messages are
    logged.
    """

    def __init__(
        self, environment: Environment, dispatcher: Dispatcher, run_scene: RunScene, targets: Sequence[str]
    ) -> None:
        self._dispatcher = dispatcher
        self._brake = environment.brake
        self._run_scene_of = run_scene
        self._targets = targets
        self._variables = environment.variables
        self._timers = environment.timers
        self._registry: Registry = environment.registry
        self._bus: Bus = environment.bus
        self._clock: Clock = environment.clock

    def table(self) -> Mapping[str, CtxFunction]:
        registry = self._registry
        return {
            "command": self._command,
            "command_room": partial(self._command_all, registry.list_room_devices),
            "command_group": partial(self._command_all, registry.list_group_devices),
            "invoke": self._invoke,
            "notify": self._notify,
            "run_scene": self._run_scene,
            "sleep": self._sleep,
            "wait_for": self._wait_for,
            "get_device": partial(_get_one, DEVICE, registry.get_device),
            "get_room": partial(_get_one, ROOM, registry.get_room),
            "get_group": partial(_get_one, GROUP, registry.get_group),
            "list_devices": partial(self._list, DEVICE, lambda _: registry.list_devices()),
            "list_rooms": partial(self._list, ROOM, lambda _: registry.list_rooms()),
            "list_room_devices": partial(self._list, DEVICE, registry.list_room_devices),
            "list_groups": partial(self._list, GROUP, lambda _: registry.list_groups()),
            "list_group_devices": partial(self._list, DEVICE, registry.list_group_devices),
            "get": self._get,
            "set": self._set,
            "start_timer": self._start_timer,
            "cancel_timer": self._cancel_timer,
            "snapshot": self._snapshot,
            "restore": self._restore,
        }

    async def _command(self, context: Context, device_id: str, raw: Any, *_: None) -> dict[str, Any]:
        try:
            try:
                command = Command.parse(raw)
            except UnfitValue as unfit:
                check_device_range(self._list_specs(device_id), unfit)
                raise
            result = await self._send(context, device_id, command)
        except LaresError as error:
            _note_failed_command(context, device_id, error)
            raise
        return {"status": result["status"], "message": result["message"]}

    async def _send(self, context: Context, device_id: str, command: Command) -> dict[str, Any]:
        """Send the command to the device. Store and return the result. If the id is unknown, the result is an
        error."""
        try:
            device = self._registry.get_device(device_id)
        except NotFound as error:
            outcome = self._dispatcher.refuse(device_id[:MAX_ID_CHARS], command, context.source, error)
        else:
            [outcome] = await self._dispatcher.send([device], command, context.source)
        return context.record(outcome, command)

    async def _command_all(
        self, find: _Find, context: Context, name: str, raw: Any, *_: None
    ) -> list[dict[str, Any]]:
        try:
            devices, command = find(name), Command.parse(raw)
            outcomes = await self._dispatcher.send(devices, command, context.source) if devices else ()
        except LaresError as error:
            _note_failed_command(context, name, error)
            raise
        return [context.record(outcome, command) for outcome in outcomes]

    def _list_specs(self, device_id: str) -> Iterable[CommandSpec]:
        device = self._registry.find_device(device_id)
        return () if device is None else device.commands or ()

    async def _invoke(self, context: Context, target: str, payload: Any, _: None) -> Any:
        check_payload(payload)
        payload = self._registry.with_id(payload or {})
        self._brake.note_invoke(context.source, payload)
        return await self.invoke(context, target, payload)

    async def invoke(self, context: Context, target: str, payload: Mapping[str, Any]) -> Any:
        """Run an operation, and add it to the trace."""
        status = "error"
        try:
            answer = await self._dispatcher.invoke(target, payload)
            status = "ok"
        except LaresError as error:
            context.note_failure(target, str(error))
            raise
        finally:
            context.trace.add("invoke", target=target, status=status)
        return answer

    async def _sleep(self, context: Context, seconds: float, *_: None) -> None:
        check_sleep(seconds)
        context.trace.add("sleep", secs=seconds)
        await self._clock.sleep(seconds)

    async def _list(self, shape: Shape, find: _Find, _: Context, name: str, *__: None) -> list[Any]:
        """Return the list in the given shape, encoded. Raise `NotFound` for an unknown room or group.

        Encoded objects need no garbage collections. The objects of 2,000 devices in 16 lists at once would make a
        collection block the loop for 200 ms.
        """
        shown: list[Any] = []
        encoded = (orjson.Fragment(to_bytes(shape(each))) for each in find(name))
        await in_steps(self._clock, map(shown.append, encoded))
        return shown

    async def _run_scene(self, context: Context, id_: str, *_: None) -> list[Mapping[str, Any]]:
        """Run the scene until it ends, and return its command results."""
        self._brake.note_effect(context.source, "scene", id_)
        status = ExecutionStatus.CANCELLED
        try:
            ending = await self._run_scene_of(id_, context)
            status = ending.status
            context.counted_secs += ending.counted_secs
        except LaresError:
            status = ExecutionStatus.ERROR
            raise
        finally:
            context.trace.add("scene", scene_id=id_, status=status)
        if ending.status is not ExecutionStatus.OK:
            raise Invalid(f"ctx:run_scene: scene '{id_}' ended with {ending.status}: {ending.error}")
        return list(ending.results)

    async def _get(self, context: Context, name: str, default: Value, _: None) -> Value:
        value = self._variables.find(name)
        return default if value is None else value

    async def _set(self, context: Context, name: str, value: Value, options: Any) -> None:
        if parse_is_durable(options):
            await self._variables.set_durable(name, value, context.source)
        else:
            self._variables.set(name, value, context.source)

    async def _start_timer(self, context: Context, name: str, secs: float, payload: Value) -> None:
        await self._timers.start(name, secs, payload, context.source)

    async def _cancel_timer(self, context: Context, name: str, *_: None) -> bool:
        return await self._timers.cancel(name)

    async def _wait_for(self, context: Context, device_id: str, raw: Any, _: None) -> bool:
        attribute, requirement, secs = parse_wait(raw)
        device_id = self._registry.get_device(device_id).id
        matched = asyncio.Event()

        def check(event: Event | None = None) -> None:
            if event is None or (isinstance(event, DeviceStateChanged) and event.device.id == device_id):
                found = self._registry.find_device(device_id)
                if found is not None and requirement.holds(found.attributes.get(attribute)):
                    matched.set()

        has_matched = False
        forget = self._bus.listen(check, DeviceStateChanged)
        try:
            check()
            has_matched = await self._clock.wait(matched, secs)
        finally:
            forget()
            context.trace.add("wait", device_id=device_id, attribute=attribute, result=has_matched)
        return has_matched

    async def _snapshot(self, context: Context, ids: Any, *_: None) -> dict[str, Any]:
        ids = parse_device_ids(ids)
        devices = self._registry.find_devices(ids)
        found = {word for device in devices for word in (device.id, device.alias)}
        if missing := [each for each in ids if each not in found]:
            context.log("warn", "ctx:snapshot omits devices that are missing", {"devices": missing})
        return {device.id: _shown(device) for device in devices}

    async def _restore(self, context: Context, snapshot: Any, *_: None) -> list[dict[str, Any]]:
        check_snapshot(snapshot)
        now = {device.id: device.attributes for device in self._registry.find_devices(list(snapshot))}
        commands = [
            (device_id, command)
            for device_id, shown in snapshot.items()
            for command in _restoring_commands(shown, is_on=now.get(device_id, {}).get("power") == "on")
        ]
        return [await self._send(context, device_id, command) for device_id, command in commands]

    async def _notify(self, context: Context, message: str, fields: Any, _: None) -> list[dict[str, Any]]:
        """Send the message to all targets concurrently. Return the results in target order."""
        check_notification(message, fields)
        if not self._targets:
            # do not use "%s", because the log limit compares the format texts
            log.info(message, extra={"source": context.source})
            context.warn("notify", reason := "no targets are configured; set targets in [notify]")
            return [_result("notify", Status.UNSUPPORTED, reason)]
        payload: dict[str, Any] = {"message": message, "fields": fields or {}}
        title = payload["fields"].get("title")
        if isinstance(title, str):
            payload["title"] = title
        return await asyncio.gather(*(self._notify_target(context, target, payload) for target in self._targets))

    async def _notify_target(self, context: Context, target: str, payload: dict[str, Any]) -> dict[str, Any]:
        try:
            await self.invoke(context, target, payload)
        except Unsupported as error:
            return _result(target, Status.UNSUPPORTED, str(error))
        except LaresError as error:
            return _result(target, Status.ERROR, str(error))
        return _result(target, Status.OK, None)


def _note_failed_command(context: Context, name: str, error: LaresError) -> None:
    context.note_failure(f"command to {name[:MAX_ID_CHARS]}", str(error))


async def _get_one(shape: Shape, find: _Find, _: Context, name: str, *__: None) -> Any:
    with suppress(NotFound):
        return shape(find(name))
    return None


def _result(target: str, status: Status, message: str | None) -> dict[str, Any]:
    return {"target": target, "status": status, "message": message}


def _shown(device: Device) -> dict[str, Value]:
    taken = {spec.capability for spec in device.commands or () if "set" in spec.actions}
    shown: dict[str, Value] = {}
    if any(spec.capability == "power" for spec in device.commands or ()) and "power" in device.attributes:
        shown["power"] = device.attributes["power"]
    color = next((each for each in COLORS if each in taken and each in device.attributes), None)
    for name in ("brightness", color):
        if name is not None and name in taken and name in device.attributes:
            shown[name] = device.attributes[name]
    return shown


def _restoring_commands(shown: Mapping[str, Any], *, is_on: bool) -> list[Command]:
    """Return the commands that restore the device. If the device was off, `off` is the last command, because
    brightness and colour commands switch the device on."""
    power = shown.get("power")
    off = [Command.parse({"capability": "power", "action": "off"})] if power == "off" else []
    if off and not is_on:
        return off
    on = [Command.parse({"capability": "power", "action": "on"})] if power == "on" else []
    names = [name for name in ("brightness", *COLORS) if name in shown]
    return [
        *on,
        *(Command.parse({"capability": name, "action": "set", "value": shown[name]}) for name in names),
        *off,
    ]
