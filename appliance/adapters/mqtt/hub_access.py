"""What publishing on a broker needs of the hub."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from appliance.adapters.dispatch import Dispatcher
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.events import Event
from appliance.home.model import Device
from appliance.home.registry import Registry

FrameOf = Callable[[Event], bytes | None]


def no_frame(_: Event) -> None:
    """Tell nothing of any event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeAccess:
    """What the outlet may see and do. `send` gives status and message; scenes and automations are names by ids.

    `frame_of` gives the JSON of an event as the event stream sends it, nothing for one that it does not tell.
    """

    registry: Registry
    bus: Bus
    send: Callable[[Device, Command], Awaitable[tuple[str, str | None]]]
    scenes: Callable[[], Mapping[str, str]]
    run_scene: Callable[[str], Awaitable[None]]
    automations: Callable[[], Mapping[str, tuple[str, bool]]]
    switch: Callable[[str, bool], Awaitable[None]]
    frame_of: FrameOf


class Named(Protocol):
    """A scene or automation by id and name."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def name(self) -> str:
        """Its name."""


class SceneAccess(Protocol):
    """The scenes as the outlet needs them."""

    def list_scenes(self) -> Sequence[Named]:
        """Every scene."""

    def execute(self, id_: str, /) -> Any:
        """Start a scene."""


class SwitchView(Protocol):
    """An automation and whether it is enabled."""

    @property
    def definition(self) -> Named:
        """What it is."""

    @property
    def is_enabled(self) -> bool:
        """Whether it runs."""


class AutomationAccess(Protocol):
    """The automations as the outlet needs them."""

    def list_views(self) -> Sequence[SwitchView]:
        """Every automation."""

    async def switch(self, id_: str, /, *, is_enabled: bool) -> Any:
        """Switch one on or off."""


def access_of(
    registry: Registry,
    bus: Bus,
    dispatcher: Dispatcher,
    scenes: SceneAccess,
    automations: AutomationAccess,
    frame_of: FrameOf,
) -> HomeAccess:
    """What an outlet may see and do in this home."""

    async def send(device: Device, command: Command) -> tuple[str, str | None]:
        (outcome,) = await dispatcher.send([device], command, "device")
        return outcome.status, outcome.message

    async def run_scene(id_: str) -> None:
        scenes.execute(id_)

    async def switch(id_: str, is_enabled: bool) -> None:
        await automations.switch(id_, is_enabled=is_enabled)

    return HomeAccess(
        registry=registry,
        bus=bus,
        send=send,
        scenes=lambda: {scene.id: scene.name for scene in scenes.list_scenes()},
        run_scene=run_scene,
        automations=lambda: {
            view.definition.id: (view.definition.name, view.is_enabled) for view in automations.list_views()
        },
        switch=switch,
        frame_of=frame_of,
    )
