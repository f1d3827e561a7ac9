"""What publishing on a broker needs of the hub."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct

from appliance.adapters.dispatch import Outcome
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.events import Event
from appliance.home.model import Device
from appliance.home.registry import Registry

FrameOf = Callable[[Event], bytes | None]


def no_frame(_: Event) -> None:
    """No event has a frame."""


class HomeAccess(Struct, frozen=True, kw_only=True):
    """What the outlet reads and calls. `send` is `Dispatcher.send`.

    `scenes` gives names by id, `automations` name and whether it is enabled. `run_scene` and `switch` raise
    `LaresError`. `frame_of` gives the JSON of an event as the event stream sends it, None for one that it leaves out.
    """

    registry: Registry
    bus: Bus
    send: Callable[[Sequence[Device], Command, str], Awaitable[Sequence[Outcome]]]
    scenes: Callable[[], Mapping[str, str]]
    run_scene: Callable[[str], object]
    automations: Callable[[], Mapping[str, tuple[str, bool]]]
    switch: Callable[[str, bool], Awaitable[object]]
    frame_of: FrameOf
