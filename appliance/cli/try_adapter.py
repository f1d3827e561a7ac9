"""`lares try-adapter`: polls a Lua kind once without a hub, and can send a command."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from appliance import config
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.lua_kinds.access import read_access
from appliance.adapters.lua_kinds.adapter import LuaAdapter
from appliance.adapters.lua_kinds.host import SectionFault
from appliance.adapters.lua_kinds.kept_texts import KeptTexts
from appliance.adapters.lua_kinds.origins import Origins
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.adapters.lua_kinds.section_recorder import SectionRecorder
from appliance.adapters.redaction import Redaction
from appliance.adapters.trial_home import TrialHome
from appliance.cli.lua_pool import open_pool
from appliance.cli.named_files import check_target, reading, write_private
from appliance.cli.owner import as_owner, find_owner
from appliance.cli.paths import HubPaths
from appliance.cli.terminal import say
from appliance.clock import Clock
from appliance.errors import ConfigFailed, Invalid, LaresError, StartFailed
from appliance.home import events
from appliance.home.commands import Command
from appliance.home.model import Device
from appliance.lua.kind_catalog import MAX_CALL_CPU_SECS, build_kind_catalog
from appliance.tables.fields import Fields
from appliance.tables.plain_files import read_plain
from appliance.tasks import Tasks

MAX_RECORDING_BYTES = 32 << 20
MAX_SHOWN_LINE_CHARS = 1000
"""Maximum number of printed characters of a request or answer. A recording always contains all characters."""

LISTEN_SECS = 3.0
"""Time limit for connecting a listening kind, and for its first message."""


def try_adapter(arguments: argparse.Namespace) -> int:
    """Poll once, and print requests, answers, and devices."""
    paths = HubPaths.of_process(arguments)
    if arguments.name is None and arguments.set and "=" not in arguments.set[-1]:
        arguments.name = arguments.set.pop()  # without "=", the word after --set is the adapter's name
    if arguments.name is None:
        raise StartFailed("specify a Lua kind, or a section with a Lua kind", os.EX_USAGE)
    logging.basicConfig(level=logging.INFO, format="log: %(message)s")
    logging.getLogger("adapters").setLevel(logging.DEBUG)
    file, data_dir = paths.find_config(), paths.find_data_dir()
    replay = None if arguments.replay is None else _read_recording(Path(arguments.replay))
    command = None if arguments.command_ is None else _read_command(*arguments.command_)
    if arguments.record is not None:
        _check_record(Path(arguments.record), data_dir)
    with as_owner(data_dir, file):
        section = _section_of(arguments, file, replay)
    asyncio.run(_Trial(section, arguments.record, command, replay).run(file, data_dir))
    return os.EX_OK


def _check_record(file: Path, data_dir: Path) -> None:
    """Raise `StartFailed` before the first request to a device if the recording cannot be written to this path, or
    would overwrite another file."""
    find_owner(file)
    check_target(file, data_dir)
    if os.path.lexists(file):
        try:
            _read_recording(file)
        except StartFailed:
            message = f"{file} exists already and is not a recording; choose another path"
            raise StartFailed(message, os.EX_CANTCREAT) from None


def _read_recording(file: Path) -> Any:
    try:
        with reading(file), as_owner(file):
            recording = orjson.loads(read_plain(file, MAX_RECORDING_BYTES))
    except orjson.JSONDecodeError:
        recording = None
    is_recording = isinstance(recording, dict) and isinstance(recording.get("exchanges"), list)
    if not is_recording or not isinstance(recording.get("settings", {}), dict):
        raise StartFailed(f"{file} is not a recording of lares try-adapter", os.EX_DATAERR)
    return recording


def _read_command(device_id: str, text: str) -> tuple[str, Command]:
    try:
        return device_id, Command.parse(orjson.loads(text))
    except orjson.JSONDecodeError:
        fault = f"--command takes an id and a command as JSON, not {text!r}"
    except Invalid as refused:
        fault = f"--command: {refused}"
    raise StartFailed(fault, os.EX_USAGE)


def _section_of(arguments: argparse.Namespace, file: Path, replay: Any) -> LuaSection:
    """Return the section with the given name. If there is no such section, return a new section of the kind with this
    name. Add the values of `--set`."""
    name = arguments.name
    raw: dict[str, Any] = {"type": name}
    if replay is not None:
        raw = {**replay.get("settings", {}), "type": replay.get("kind", name)}
    elif file.is_file():
        stated = config.parse_toml(read_plain(file).decode(errors="replace"), str(file)).get("adapters", {})
        raw = {"type": name, **stated[name]} if isinstance(stated.get(name), dict) else raw
    raw |= dict(_setting(each) for each in arguments.set)
    kind = str(raw["type"])
    if kind not in config.list_lua_kinds(file):
        there = ", ".join(config.list_lua_kinds(file))
        raise StartFailed(
            f"{kind} is neither a Lua kind nor a section with a Lua kind; available: {there}", os.EX_USAGE
        )
    return LuaSection(name=name, kind=kind, raw=raw, file="--set", line_of=lambda path: 0)


def _setting(text: str) -> tuple[str, Any]:
    """Split a setting into name and value. Parse the value as TOML; if it is invalid TOML, use the text."""
    key, equals, value = text.partition("=")
    if not equals:
        raise StartFailed(f"--set takes key=value, not {text!r}", os.EX_USAGE)
    try:
        return key.strip(), config.parse_toml(f"value = {value}", "--set")["value"]
    except ConfigFailed:
        return key.strip(), value


class _Trial:
    """Runs the section's adapter in a temporary home."""

    def __init__(
        self, section: LuaSection, record: str | None, command: tuple[str, Command] | None, replay: Any
    ) -> None:
        self._section = section
        self._record = record
        self._command_to_send = command
        self._replay = replay
        self._clock = Clock()
        self._home = TrialHome(section.name, self._clock)
        self._registry = self._home.registry
        self._home.bus.listen(_show_event, events.DeviceEvent)

    async def run(self, file: Path, data_dir: Path) -> None:
        """Poll, then send the command, if any. Raise `ConfigFailed` for errors in file or settings, and `StartFailed`
        for other errors."""
        settings, clock = config.parse("", str(file), {}), self._clock
        workers = open_pool(settings, clock, data_dir, file, max_cpu_secs=MAX_CALL_CPU_SECS)
        async with workers as pool, DeviceSession() as session:
            catalog = build_kind_catalog(file, [self._section], pool.describe, self._home.bus, pool)
            await catalog.load()
            loaded = catalog.find(self._section)
            if isinstance(loaded, SectionFault):
                raise ConfigFailed(list(loaded.faults))
            context = self._home.context(lambda: session, catalog.files.folder.path.parent.parent)
            access = read_access(loaded.settings, context.root)
            origins = Origins(loaded.settings, access.http, context)
            redact = Redaction(access.secrets, KeptTexts(context.secrets))
            try:
                recorder = SectionRecorder.for_trial(origins, self._replay, redact.in_value)
            except Invalid as fault:
                raise StartFailed(str(fault), os.EX_DATAERR) from None
            adapter = LuaAdapter(context, catalog, loaded, recorder, recorder)
            try:
                await self._try_out(adapter, recorder, has_poll=loaded.definition.has_poll)
            finally:
                self._show(adapter, recorder, loaded.definition.settings)

    async def _try_out(self, adapter: LuaAdapter, recorder: SectionRecorder, *, has_poll: bool) -> None:
        connection = adapter.connection
        async with Tasks() as tasks:
            if connection is not None:
                tasks.start(adapter.listen(), "listening")
                if not await self._wait(lambda: connection.is_open or connection.is_unused or recorder.messages_kept):
                    reason = f"the device did not accept the connection within {LISTEN_SECS:g} s"
                    self._miss(reason, is_fatal=not has_poll)
            await self._poll_and_command(adapter)
            if not has_poll and connection is None:
                self._miss("the kind has neither the function `poll` nor the field `listen`")
            elif not has_poll and not await self._wait(self._registry.list_devices):
                self._miss(f"no message about a device arrived within {LISTEN_SECS:g} s")

    async def _wait(self, is_over: Callable[[], Any]) -> bool:
        """Wait until `is_over` returns true. Return False if the wait takes longer than `LISTEN_SECS`."""
        until = self._clock.monotonic() + LISTEN_SECS
        while not is_over() and self._clock.monotonic() < until:
            await self._clock.sleep(0.05)
        return bool(is_over())

    def _miss(self, sentence: str, *, is_fatal: bool = False) -> None:
        if is_fatal:
            raise StartFailed(f"{self._section.name}: {sentence}", os.EX_UNAVAILABLE)
        say(sentence)

    async def _poll_and_command(self, adapter: LuaAdapter) -> None:
        try:
            report = await adapter.run_limited(adapter.poll())
            self._registry.apply(report)
            await adapter.publish_events()
            adapter.publish.started()
            if self._command_to_send is not None:
                await self._command(adapter, *self._command_to_send)
        except LaresError as error:
            raise StartFailed(f"{self._section.name}: {error}", os.EX_UNAVAILABLE) from None

    async def _command(self, adapter: LuaAdapter, device_id: str, command: Command) -> None:
        local = device_id.removeprefix(f"{self._section.name}:")
        result = await adapter.run_limited(adapter.command(f"{self._section.name}:{local}", command))
        if result.report is not None:
            self._registry.apply(result.report)
        if result.error is not None:
            raise result.error
        say(f"done: {command}")

    def _show(self, adapter: LuaAdapter, recorder: SectionRecorder, fields: Fields) -> None:
        """Print requests, answers, and devices. Write the recording if one is requested."""
        say(*(adapter.redact(line)[:MAX_SHOWN_LINE_CHARS] for line in recorder.lines()))
        for device in self._registry.list_devices():
            say(*_describe(device))
        say(*(f"dropped: {each}" for each in self._home.dropped))
        if self._record is not None:
            recording = recorder.recording(self._section, fields, adapter.redact.in_value)
            packed = orjson.dumps(recording, option=orjson.OPT_INDENT_2)
            write_private(Path(self._record), packed, exit_code=os.EX_CANTCREAT)
            say(f"wrote {self._record}")


def _describe(device: Device) -> list[str]:
    lines = [f"{device.id}  {device.name}  {device.kind} {device.info.device_class or ''}".rstrip()]
    lines += [f"    {name} = {orjson.dumps(value).decode()}" for name, value in sorted(device.attributes.items())]
    return [*lines, *(f"    takes {spec.capability}: {', '.join(spec.actions)}" for spec in device.commands or ())]


def _show_event(event: events.Event) -> None:
    if isinstance(event, events.DeviceEvent):
        say(f"event: {event.device_id} {event.event} {orjson.dumps(event.data).decode()}")
