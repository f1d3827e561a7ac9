"""Sends the messages of a `notify` section in order, with three attempts. When the hourly limit is reached,
further messages are combined into one message."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from importlib import import_module
from math import ceil
from types import ModuleType
from typing import Any, NoReturn
from urllib.parse import quote

import orjson

from appliance.adapters.base import Adapter, AdapterContext, Operation
from appliance.adapters.notification import Action, Notification
from appliance.adapters.notify.kind import NotifySection
from appliance.adapters.notify.sender import Button, PartlySent, Sender
from appliance.adapters.redaction import Redaction, secret_words
from appliance.adapters.secret_files import secret_of
from appliance.byte_budget import ByteBudget, estimate_json_memory
from appliance.errors import AdapterFailed, Busy, LaresError, Unreachable
from appliance.home.values import Value
from appliance.shortening import join_first, shorten
from appliance.tables.checks import format_value

PAUSES_SECS = (1.0, 4.0)
"""Pauses before the second and the third attempt."""

TRY_TIMEOUT_SECS = 10.0

MAX_WAITING = 100
"""Maximum number of messages that wait for earlier messages. Further messages are refused."""

MAX_WAITING_BYTES = 1 << 20
"""Maximum memory of the payloads of the messages that wait or are being sent. A single message can be larger, because
its `fields` have no limit here."""

MAX_GATHERED = 50
"""Maximum number of gathered messages whose text is stored. If there are more messages, only their number is
stored."""

MAX_GATHERED_CHARS = 200
"""Maximum length of each gathered message in the combined message."""

MAX_WARNINGS = 100
"""Maximum number of different warnings about omitted buttons. Scripts choose the names of hooks."""

HOUR_SECS = 3600.0

log = logging.getLogger("notify")


class NotifyAdapter(Adapter):
    """Sends messages for `ctx:notify`, `ctx:invoke("<section>:send", …)`, and `lares notify`. The adapter has no
    devices."""

    operation_secs: Mapping[str, float] = {"send": 55.0}
    """The time limit of a message includes the wait for earlier messages."""

    def __init__(self, settings: NotifySection, context: AdapterContext) -> None:
        super().__init__(context)
        self._settings = settings
        self._context = context
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._payloads = ByteBudget(MAX_WAITING_BYTES)
        self._sent_at: deque[float] = deque()
        self._gathered: list[str] = []
        self._gathered_count = 0
        self._is_gathering = asyncio.Event()
        self._sender: Sender | None = None
        self._redact = Redaction(())
        self._warned: set[str] = set()

    @property
    def operations(self) -> Mapping[str, Operation]:
        """`send` takes `message`, `title?` and `fields?`."""
        return {"send": self._send}

    async def run(self) -> None:
        """Send gathered messages as soon as the hourly limit allows."""
        await self.publish.full_list([])
        self.publish.ready()
        self.publish.started()
        try:
            while True:
                await self._is_gathering.wait()
                await self.clock.sleep(self._secs_to_room())
                await self._send_gathered()
        finally:
            if self._gathered_count:
                log.warning("%s: stopped; %d collected messages were not sent", self.name, self._gathered_count)

    def _secs_to_room(self) -> float:
        return max(self._sent_at[0] + HOUR_SECS - self.clock.monotonic(), 0.0)

    async def _send(self, payload: Mapping[str, Value]) -> Value:
        """Send a message and wait for its delivery, or gather it. Raise `AdapterFailed` after three failed
        attempts."""
        notification = Notification.parse(payload)
        if self._is_full():
            self._gather(notification.text)
            return {"status": "gathered"}
        await self._deliver(notification, estimate_json_memory(orjson.dumps(payload)))
        return {"status": "sent"}

    def _is_full(self) -> bool:
        """Return whether the hourly limit is reached."""
        now = self.clock.monotonic()
        while self._sent_at and now - self._sent_at[0] >= HOUR_SECS:
            self._sent_at.popleft()
        return bool(self._gathered) or len(self._sent_at) >= self._settings.max_per_hour

    def _gather(self, text: str) -> None:
        if not self._gathered:
            limit, mins = self._settings.max_per_hour, ceil(self._secs_to_room() / 60)
            log.warning(
                "%s: the limit of %d messages per hour is reached (max_per_hour); "
                "further messages are collected, and sent together in %d min",
                *(self.name, limit, mins),
            )
        self._gathered_count += 1
        if len(self._gathered) < MAX_GATHERED:
            self._gathered.append(shorten(text, MAX_GATHERED_CHARS))
        self._is_gathering.set()

    async def _send_gathered(self) -> None:
        count, lines = self._gathered_count, self._gathered
        self._gathered = []
        self._is_gathering.clear()
        text = join_first(lines, MAX_GATHERED, "\n", count)
        try:
            await self._deliver(Notification(text, f"{count} messages"), 0)
        except AdapterFailed as error:
            log.warning("%s: %d collected messages were not sent: %s", self.name, count, error)
        self._gathered_count -= count

    async def _deliver(self, notification: Notification, payload_bytes: int) -> None:
        """Send the message after the earlier ones. Until then, the callers keep its payload in memory."""
        if self._waiting >= MAX_WAITING:
            raise Busy(f"{self.name} already has {MAX_WAITING} waiting messages; this message was not sent")
        if self._waiting and not self._payloads.has_room(payload_bytes):
            limit = f"{MAX_WAITING_BYTES >> 10} KiB"
            raise Busy(f"the waiting messages of {self.name} would need more than {limit}; this message was not sent")
        self._sent_at.append(self.clock.monotonic())
        self._waiting += 1
        self._payloads.held += payload_bytes
        try:
            async with self._lock:
                await self._send_with_retries(notification)
        finally:
            self._waiting -= 1
            self._payloads.held -= payload_bytes

    async def _send_with_retries(self, notification: Notification) -> None:
        for pause in (*PAUSES_SECS, None):
            try:
                await self._try(notification)
            except AdapterFailed as error:
                if pause is None or isinstance(error, PartlySent):
                    self._fail(error)
                log.info("%s: not sent yet; next attempt in %g s: %s", self.name, pause, self._redacted(error))
                await self.clock.sleep(pause)
            else:
                self.publish.answered()
                return

    async def _try(self, notification: Notification) -> None:
        if self._sender is None:
            self._sender = await self._make_sender()
        buttons = self._buttons_of(notification.actions) if self._sender.shows_buttons else ()
        self._warn_of_omitted(notification.actions, shows_buttons=self._sender.shows_buttons)
        try:
            async with asyncio.timeout(TRY_TIMEOUT_SECS):
                await self._sender.send(notification.message, notification.title, buttons)
        except TimeoutError:
            raise Unreachable(f"no answer within {TRY_TIMEOUT_SECS:g} s") from None

    def _fail(self, error: AdapterFailed) -> NoReturn:
        tries = "" if isinstance(error, PartlySent) else "three attempts failed: "
        failure = type(error)(f"{tries}{self._redacted(error)}")
        self.publish.record_error(failure)
        try:
            raise failure from None
        finally:
            del failure  # a variable that refers to a raised exception forms a cycle with the exception's traceback

    def _buttons_of(self, actions: Sequence[Action]) -> list[Button]:
        """Return a button for each action whose hook has a key."""
        url, keys = self._settings.hub_url, self._settings.hook_keys or {}
        return [
            Button(each.label, f"{url}/hooks/{quote(each.hook, safe=':')}", keys[each.hook])
            for each in actions
            if each.hook in keys
        ]

    def _warn_of_omitted(self, actions: Sequence[Action], *, shows_buttons: bool) -> None:
        """Log each hook whose button is omitted, once per reason."""
        keys = self._settings.hook_keys
        for hook in dict.fromkeys(each.hook for each in actions):
            if not shows_buttons:
                reason = "messages of this section cannot show buttons"
            elif keys is None:
                reason = "the section has no hub_url and hook_keys"
            elif hook not in keys:
                reason = "hook_keys has no key for it"
            else:
                continue
            self._warn_once(f"the button for the hook {format_value(hook)} is omitted, because {reason}")

    def _warn_once(self, message: str) -> None:
        if message not in self._warned and len(self._warned) < MAX_WARNINGS:
            self._warned.add(message)
            log.warning("%s: %s (docs/notify.md)", self.name, message)

    def _redacted(self, error: LaresError) -> str:
        return self._redact(str(error))

    async def _make_sender(self) -> Sender:
        """On a thread, read the secret files and import the sender's module. Raise `AdapterFailed` on failure."""
        settings = self._settings
        token, password, module = await asyncio.to_thread(self._prepare)
        stated = (*(settings.headers or {}).values(), settings.topic, settings.user)
        words = secret_words(text for text in stated if text)
        secrets = (token, password, *(settings.hook_keys or {}).values(), *words)
        self._redact = Redaction([each for each in secrets if each])
        sender: Sender = module.build(settings, self._context, token, password)
        return sender

    def _prepare(self) -> tuple[str | None, str | None, ModuleType]:
        settings, root = self._settings, self._context.root
        token = secret_of("token", settings.token, root, settings.token_file)
        password = secret_of("password", settings.password, root, settings.password_file)
        module = "web" if settings.smtp is None else "mail"
        return token, password, import_module(f"appliance.adapters.notify.{module}")


def build(settings: Any, context: AdapterContext) -> NotifyAdapter:
    return NotifyAdapter(settings, context)
