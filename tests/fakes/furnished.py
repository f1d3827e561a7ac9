"""A home with devices of all classes, for the dashboard. Only the registry knows the devices."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.home.command_specs import CommandSpec
from appliance.home.model import DeviceKind, Info, Observation, Report
from appliance.home.registry import Registry
from appliance.home.values import Value
from tests.fakes.app import LIGHT, App

ADAPTER = "shown"


def spec(capability: str, *actions: str, **narrowed: float | str | tuple[str, ...]) -> CommandSpec:
    return CommandSpec(capability=capability, actions=actions or ("set",), **narrowed)  # type: ignore[arg-type]


def measured(value: float, unit: str) -> Value:
    return {"value": value, "unit": unit}


def celsius(value: float) -> Value:
    return measured(value, "°C")


def seen(
    local_id: str,
    name: str,
    kind: DeviceKind,
    attributes: dict[str, Value],
    commands: Sequence[CommandSpec] = (),
    device_class: str | None = None,
) -> Observation:
    """Return a device in the form in which its vendor describes it."""
    return Observation(
        device_id=f"{ADAPTER}:{local_id}",
        kind=kind,
        name=name,
        attributes=attributes,
        commands=tuple(commands),
        info=Info(manufacturer="Example", model="Simulated", device_class=device_class),
    )


POWER = spec("power", "on", "off", "toggle")

DEVICES = (
    seen(
        "strip",
        "Shelf",
        DeviceKind.LIGHT,
        {"power": "on", "brightness": 70, "color_hs": {"hue": 28, "saturation": 85}},
        (POWER, spec("brightness"), spec("color_hs")),
    ),
    seen("plug", "Coffee machine", DeviceKind.SWITCH, {"power": "on"}, (POWER,), "plug"),
    seen(
        "blind",
        "Blind",
        DeviceKind.SWITCH,
        {"cover_position": 40},
        (spec("cover_position", "open", "stop", "close", "set"),),
        "cover",
    ),
    seen(
        "heater",
        "Radiator",
        DeviceKind.SWITCH,
        {"target_temperature": celsius(21.5), "temperature": celsius(20.3), "hvac_mode": "heat"},
        (
            spec("target_temperature", min=5, max=30, step=0.5, unit="°C"),
            spec("hvac_mode", values=("off", "heat", "auto")),
        ),
        "climate",
    ),
    seen("lock", "Front door", DeviceKind.SWITCH, {"lock": "locked"}, (spec("lock", "lock", "unlock"),), "lock"),
    seen(
        "air",
        "Bedroom air",
        DeviceKind.SENSOR,
        {"temperature": celsius(19.4), "humidity": {"value": 52, "unit": "%"}, "battery": 88},
    ),
    seen("motion", "Hallway", DeviceKind.SENSOR, {"motion": "clear", "battery": 61}),
    seen("leak", "Under the sink", DeviceKind.SENSOR, {"water_leak": False}),
)

ROOMS = {
    "living": ("Living room", ("elgato_lights:light:0", f"{ADAPTER}:strip", "roku_tv:tv", f"{ADAPTER}:blind")),
    "kitchen": ("Kitchen", (f"{ADAPTER}:plug", f"{ADAPTER}:leak")),
    "bedroom": ("Bedroom", (f"{ADAPTER}:heater", f"{ADAPTER}:air")),
}


def show(registry: Registry, *devices: Observation) -> None:
    registry.apply(Report(adapter=ADAPTER, observations=devices))


def many(count: int) -> list[Observation]:
    commands = (POWER, spec("brightness"))
    return [
        seen(f"lamp_{at:03}", f"Lamp {at}", DeviceKind.LIGHT, {"power": "off", "brightness": 50}, commands)
        for at in range(count)
    ]


async def furnish(app: App) -> None:
    """Add rooms, a group, and devices of all classes."""
    show(app.hub.registry, *DEVICES)
    for room_id, (name, devices) in ROOMS.items():
        await app.post("/rooms", {"id": room_id, "name": name})
        for device in devices:
            await app.post(f"/devices/{device}/room", {"room_id": room_id})
    await app.post("/groups", {"id": "lights", "name": "All lights", "members": [LIGHT, f"{ADAPTER}:strip"]})
