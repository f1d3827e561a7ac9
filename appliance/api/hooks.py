"""Passes requests for `/hooks/<id>` from phones, buttons, scripts, and devices to listeners."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from msgspec.structs import replace

from appliance.adapters.base import HookRequest
from appliance.adapters.dispatch import Dispatcher
from appliance.api.validation import BYTE_ORDER_MARK, parse_json
from appliance.errors import Invalid, MalformedRequest, NotFound
from appliance.home.bus import Bus
from appliance.home.events import HookCalled
from appliance.home.registry import Registry
from appliance.home.texts import DEVICE_HOOK_PREFIX
from appliance.home.values import MAX_JSON_DEPTH, Value, is_within

_BOUNDARY = re.compile(r'boundary="?([^\s";,]{1,70})')
_PART_NAME = re.compile(rb'content-disposition:\s*form-data\b[^\r\n]*?\bname="([^"\r\n]*)"', re.IGNORECASE)


class Hooks:
    """The listeners of hooks: automations and adapters. `has_automation` returns whether an automation has a trigger
    for a hook."""

    def __init__(
        self, registry: Registry, bus: Bus, dispatcher: Dispatcher, has_automation: Callable[[str], bool]
    ) -> None:
        self._registry = registry
        self._bus = bus
        self._dispatcher = dispatcher
        self._has_automation = has_automation

    async def has_listener(self, hook: str) -> bool:
        """Return whether an automation or adapter listens to the hook with this id."""
        return self._has_automation(hook) or await self._dispatcher.has_hook(self._with_id(hook))

    async def require(self, hook: str) -> None:
        """Raise `NotFound` if neither an automation nor an adapter listens to the hook with this id."""
        if not await self.has_listener(hook):
            raise NotFound("hook", hook)

    async def call(self, request: HookRequest) -> None:
        """Pass the request to the adapter that listens to the hook, then fire triggers. Return without waiting for
        automations to run.

        Raise `NotFound` if the hook has no listener, or `MalformedRequest` if the listener needs data but the body is
        neither a form nor JSON. If the adapter rejects the request, fire no trigger, and raise
        the adapter's error.
        """
        needs_data = request.hook.startswith(DEVICE_HOOK_PREFIX) or self._has_automation(request.hook)
        if needs_data and request.data is None and request.body.strip():
            parse_json(request.body)  # the body is either `null` or malformed
        is_taken = await self._dispatcher.hook(replace(request, hook=self._with_id(request.hook)))
        if not is_taken and not self._has_automation(request.hook):
            raise NotFound("hook", request.hook)
        self._bus.publish(HookCalled(hook=request.hook, data=request.data, query=request.query))

    def _with_id(self, hook: str) -> str:
        """Replace a device alias in the hook's id with the device's id."""
        if not hook.startswith(DEVICE_HOOK_PREFIX):
            return hook
        return DEVICE_HOOK_PREFIX + self._registry.id_of(hook.removeprefix(DEVICE_HOOK_PREFIX))


def explain_missing_listener(hook: str) -> str:
    """Return the warning about a hook without a listener."""
    listeners = "an automation with the trigger webhook, a section whose kind has hooks, or a virtual device"
    return f"nothing listens to the hook '{hook}' yet; add {listeners}"


def read_data(body: bytes, content_type: str) -> Value:
    """Return the data of a JSON body, or the last value of each form field. Return None for other bodies.

    Raise `Invalid` for JSON that is nested too deeply.
    """
    try:
        data: Any = parse_json(body)
    except MalformedRequest:
        return _read_form(body, content_type)
    if not is_within(data, MAX_JSON_DEPTH):
        raise Invalid(f"the body must not be nested more than {MAX_JSON_DEPTH} levels deep")
    return data


def _read_form(body: bytes, content_type: str) -> dict[str, str] | None:
    kind = content_type.partition(";")[0].strip().lower()
    if body.removeprefix(BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"["):
        return None  # this is broken JSON, not a form; by default, curl labels every body as a form
    if kind == "application/x-www-form-urlencoded":
        return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
    boundary = _BOUNDARY.search(content_type)
    if kind != "multipart/form-data" or boundary is None:
        return None
    return dict(_read_parts(body, boundary[1].encode(errors="replace")))


def _read_parts(body: bytes, boundary: bytes) -> list[tuple[str, str]]:
    """Return the fields of a multipart form, without its files."""
    fields = []
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary)[1:-1]:
        head, _, value = part.partition(b"\r\n\r\n")
        name = _PART_NAME.search(head)
        if name is not None and b"filename" not in head.lower():
            fields.append((name[1].decode(errors="replace"), value.decode(errors="replace")))
    return fields
