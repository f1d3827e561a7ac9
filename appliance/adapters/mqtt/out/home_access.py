"""The publisher's access to the hub: its devices, events, scenes, and automations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from appliance.adapters.dispatch import Outcome
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.events import Event
from appliance.home.model import Device
from appliance.home.registry import Registry

FrameOf = Callable[[Event], bytes | None]


def no_frame(_: Event) -> None:
    """Return None, because no event has a frame."""


class HomeAccess(Struct, frozen=True, kw_only=True):
    """`send` is `Dispatcher.send`.

    `scenes` returns names by id. `automations` returns the id and name of each automation, and whether it is enabled.
    `revision` returns a value that changes with the results of both. `run_scene` and `switch` raise `LaresError`.

    `frame_of` returns an event's JSON as in the event stream, or None if the stream omits the event. `is_stopping`
    returns whether the hub is stopping.
    """

    registry: Registry
    bus: Bus
    send: Callable[[Sequence[Device], Command, str], Awaitable[Sequence[Outcome]]]
    scenes: Callable[[], Mapping[str, str]]
    run_scene: Callable[[str], object]
    automations: Callable[[], Iterable[tuple[str, str, bool]]]
    revision: Callable[[], object]
    switch: Callable[[str, bool], Awaitable[object]]
    is_stopping: Callable[[], bool]
    frame_of: FrameOf
