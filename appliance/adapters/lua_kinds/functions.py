"""Calls the Lua functions of one section's file. Each call has a new Lua state. Only `ctx.memory` is kept between
calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from appliance.adapters.access_settings import url_path
from appliance.adapters.base import COMMAND_TIMEOUT_SECS, AdapterContext
from appliance.adapters.lua_calls import LuaCancelled
from appliance.adapters.lua_kinds.access import SectionAccess
from appliance.adapters.lua_kinds.ctx import KindCtx
from appliance.adapters.lua_kinds.host import KindHost, LoadedSection
from appliance.adapters.lua_kinds.kept_texts import KeptTexts
from appliance.adapters.lua_kinds.push_connection import PushConnection, PushSource
from appliance.adapters.lua_kinds.web_request import Transport
from appliance.adapters.redaction import Redaction, count_characters
from appliance.computing import compute_apart
from appliance.errors import AdapterFailed, Invalid, ScriptFailed
from appliance.home.values import Value
from appliance.tables.checks import format_value

MAX_REDACTED_AT_ONCE = 1 << 14
"""Length limit of a value that is redacted on the event loop. Longer values are redacted on a thread."""

HELLO, PATH = ["listen", "hello"], ["listen", "path"]
"""Functions whose results are sent to the device, and therefore may contain secrets."""


class Results(NamedTuple):
    """The first and the second result of a function, the `ctx` of the call, and the function's file and line."""

    first: Any
    second: Any
    ctx: KindCtx
    at: str


class CallCancelled(asyncio.CancelledError):
    """The cancellation of a call. `place` is the file, line, and function. `was_asking` is true if the function was
    waiting for the device."""

    def __init__(self, place: str, *, was_asking: bool) -> None:
        super().__init__(place)
        self.place = place
        self.was_asking = was_asking


class KindFunctions:
    """Calls the functions of one section's file, and stores the memory and the secrets of the section.

    `connection` is the connection of `listen`, or None.
    """

    def __init__(
        self,
        context: AdapterContext,
        host: KindHost,
        loaded: LoadedSection,
        access: SectionAccess,
        transport: Transport,
        push: PushSource,
    ) -> None:
        self.section = loaded.section
        self.kept = KeptTexts(context.secrets, context.clock)
        self.redact = Redaction(access.secrets, self.kept)
        self.settings = access.for_lua
        self.memory: dict[str, Value] = {}
        self.transport = transport
        self.connection: PushConnection | None = None
        if (listen := loaded.definition.listen) is not None:
            self.connection = PushConnection(push, listen, context.clock, host.large_messages)
        self._host = host

    async def call(
        self,
        path: list[str],
        first: Any = None,
        second: Any = None,
        *,
        body: bytes | None = None,
        reruns: bool = False,
        repeats: bool | None = None,
        secs: float = COMMAND_TIMEOUT_SECS,
    ) -> Results:
        """Call a function, and return its results. `secs` limits each of its requests, and `repeats` is passed to
        `WebRequest.repeat`.

        If `reruns` is true, and the Lua worker ends during the call, call the function once more. The argument
        `first` can be bytes, or a table with a `body` of bytes. If the function failed because an answer was missing
        or unreadable, raise the error of that request. If the function failed for another reason, raise
        `AdapterFailed` with file and line.
        """
        ctx = KindCtx(
            self.section.name, self.transport, self.kept, self.redact, self.connection, secs, repeats=repeats
        )
        await self.redact.prepare()
        if isinstance(first, bytes):
            first, body = None, first
        before = self.memory
        given = {"settings": self.settings, "memory": before, "reruns": reruns, "first": first, "second": second}
        if body is not None:
            given["bytes"] = body.decode("latin-1")
        try:
            found = await self._host.call(self.section, ctx, path, given)
        except asyncio.CancelledError as cancelled:
            place = cancelled.place if isinstance(cancelled, LuaCancelled) else f"{self.section.kind}.lua"
            raise CallCancelled(f"{place}: {'.'.join(path)}", was_asking=ctx.was_asking) from None
        except ScriptFailed as failed:
            if ctx.failure is not None and str(ctx.failure) in failed.message:
                raise type(ctx.failure)(self.redact(str(ctx.failure))) from None
            raise AdapterFailed(self.redact(str(failed))) from None
        self.remember(before, found["memory"] or {})
        first, second = found.get("first"), found.get("second")
        if path not in (HELLO, PATH):
            first, second = (self.redact(each) if isinstance(each, str) else each for each in (first, second))
        return Results(first, second, ctx, found.get("at", self.section.kind))

    async def hello(self) -> Any:
        """Return the first message for a new connection, or None."""
        return (await self.call(HELLO)).first

    async def find_path(self) -> str | None:
        """Call the file's function for the path to listen on. Return None if this section does not listen."""
        found = (await self.call(PATH)).first
        try:
            return None if found is None else url_path(found)
        except Invalid as fault:
            raise AdapterFailed(f"listen.path returned {format_value(found)}, which {fault}") from None

    def remember(self, before: Mapping[str, Value], after: Mapping[str, Value]) -> None:
        """Apply the changes that one call has made to the memory. Keep the changes that concurrent calls have
        made."""
        changed = {key: value for key, value in after.items() if key not in before or before[key] != value}
        gone = before.keys() - after.keys()
        self.memory = {key: value for key, value in {**self.memory, **changed}.items() if key not in gone}

    async def redacted(self, value: Any, redact: Callable[[Any], Any] | None = None) -> Any:
        """Remove the secrets from a value. A long value is processed on a thread."""
        redact = redact or self.redact.in_device
        if not self.redact.has_secrets():
            return value
        if count_characters(value, MAX_REDACTED_AT_ONCE) <= MAX_REDACTED_AT_ONCE:
            return redact(value)
        return await compute_apart(redact, value)
