"""Homes for the tests of the page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiomqtt

from appliance.home.model import DeviceKind
from tests.adapters.mqtt.broker import PASSWORD, USER, OwnBroker, running
from tests.fakes.announced import ANNOUNCED, announce
from tests.fakes.app import App, open_app
from tests.fakes.furnished import POWER, celsius, many, measured, seen, show, spec
from tests.fakes.patience import until

TOML = f'[adapters.mqtt]\nhost = "127.0.0.1"\nusername = "{USER}"\npassword = "{PASSWORD}"\nport = '


@asynccontextmanager
async def announced_home(tmp_path: Path) -> AsyncIterator[tuple[App, aiomqtt.Client]]:
    """Provide a home with all announced devices, and the client that announced them."""
    async with running(OwnBroker(tmp_path)) as broker, broker.client() as client:
        await announce(client)
        async with open_app(root=tmp_path, adapters=f"{TOML}{broker.port}\n") as app:
            registry = app.hub.registry
            await until(lambda: len(registry.list_devices()) == len(ANNOUNCED), 20)
            shown = [f"mqtt:{each}" for each, (_, states) in ANNOUNCED.items() if states]
            await until(lambda: all(len(each.attributes) > 1 for each in registry.find_devices(shown)), 20)
            await client.subscribe("home/+/+", qos=1)
            yield app, client


async def large(app: App, count: int) -> None:
    """Add this many lamps in ten rooms."""
    show(app.hub.registry, *many(count))
    for room in range(10):
        await app.post("/rooms", {"id": f"room_{room}", "name": f"Room {room}"})
    for at in range(count):
        await app.post(f"/devices/shown:lamp_{at:03}/room", {"room_id": f"room_{at % 10}"})
    await app.post("/rooms", {"id": "nobody", "name": "Nobody's"})


DIMMER = (POWER, spec("brightness"), spec("color_temperature", min=2200, max=6500, unit="kelvin"))

SHUTTER = spec("cover_position", "open", "stop", "close", "set")
DRAWN = {"power_consumption": measured(43, "W")}
HUMID = {"humidity": measured(52, "%")}
CLIMATE = (
    spec("target_temperature", min=5, max=30, step=0.5, unit="°C"),
    spec("hvac_mode", values=("off", "heat", "auto")),
)
HEATED = {"target_temperature": celsius(21.5), "temperature": celsius(20.1), "hvac_mode": "heat"}
WARM, COLD = ({"color_temperature": measured(each, "kelvin")} for each in (2700, 4000))

FLAT = (
    seen("hall_lamp", "Hall lamp", DeviceKind.LIGHT, {"power": "on", "brightness": 50}, DIMMER[:2]),
    seen("front_door", "Front door", DeviceKind.SWITCH, {"lock": "locked"}, [spec("lock", "lock", "unlock")], "lock"),
    seen("hall_motion", "Hall motion", DeviceKind.SENSOR, {"occupancy": "occupied", "illuminance": 12}),
    seen("floor_lamp", "Floor lamp", DeviceKind.LIGHT, {"power": "on", "brightness": 20, **WARM}, DIMMER),
    seen("desk", "Desk", DeviceKind.LIGHT, {"power": "on", "brightness": 80, **COLD}, DIMMER),
    seen("tv", "TV", DeviceKind.SWITCH, {"power": "off", "volume": 20}, [POWER, spec("volume")], "media_player"),
    seen("blind", "Blind", DeviceKind.SWITCH, {"cover_position": 40}, [SHUTTER], "cover"),
    seen("coffee", "Coffee machine", DeviceKind.SWITCH, {"power": "off"}, [POWER], "plug"),
    seen("washer", "Washing machine", DeviceKind.SWITCH, {"power": "on", **DRAWN}, [POWER], "plug"),
    seen("counter", "Counter light", DeviceKind.LIGHT, {"power": "on", "brightness": 60}, DIMMER[:2]),
    seen(
        "window", "Kitchen window", DeviceKind.SENSOR, {"contact": "open", "temperature": celsius(19.8)}, (), "window"
    ),
    seen("radiator", "Radiator", DeviceKind.SWITCH, HEATED, CLIMATE, "climate"),
    seen("air", "Bedroom air", DeviceKind.SENSOR, {"temperature": celsius(19.4), **HUMID, "battery": 18}),
)
"""A flat with residents."""

FLAT_ROOMS = {
    "hall": ("Hall", ("hall_lamp", "front_door", "hall_motion")),
    "living": ("Living room", ("floor_lamp", "desk", "tv", "blind")),
    "kitchen": ("Kitchen", ("coffee", "washer", "counter", "window")),
    "bedroom": ("Bedroom", ("radiator", "air")),
}

SCENES = ("Good night", "Movie night", "All lights off", "Wind down", "Wake up")

FILES = {
    **{
        f"scenes/{name.lower().replace(' ', '_')}.lua": f"return {{ id = '{name.lower().replace(' ', '_')}',"
        f" name = '{name}', execute = function(ctx) end }}"
        for name in SCENES
    },
    "automations/hall_light.lua": """return { id = "hall_light", name = "Hall light on motion",
    description = "Switches the hall lamp on when somebody comes after sunset.",
    trigger = { type = "device_state_change", device_id = "shown:hall_motion", attribute = "occupancy",
        equals = "occupied" },
    conditions = { { type = "device_state", device_id = "shown:hall_lamp", attribute = "power", equals = "off" } },
    execute = function(ctx) ctx:command("shown:hall_lamp", { capability = "power", action = "on" }) end }
""",
    "automations/coffee.lua": """return { id = "coffee", name = "Coffee on workdays",
    trigger = { type = "wall_clock", time = "06:30", weekdays = { "mon", "tue", "wed", "thu", "fri" } },
    execute = function(ctx) ctx:log("info", "coffee") end }
""",
    "automations/window.lua": """return { id = "window", name = "Heating off while a window is open",
    trigger = { type = "device_state_change", device_id = "shown:window", attribute = "contact", equals = "open",
        duration_secs = 180 },
    execute = function(ctx) end }
""",
    "automations/porch.lua": """return { id = "porch", name = "Blind down at night", enabled = false,
    trigger = { type = "sunset" }, execute = function(ctx) end }
""",
}
"""Scenes and automations of the flat."""


async def furnish_flat(app: App) -> None:
    """Add the flat to the hub. One lamp is unreachable."""
    show(app.hub.registry, *FLAT)
    for room_id, (name, devices) in FLAT_ROOMS.items():
        await app.post("/rooms", {"id": room_id, "name": name})
        for device in devices:
            await app.post(f"/devices/shown:{device}/room", {"room_id": room_id})
    app.hub.registry.set_availability("shown", "shown:counter", is_available=False)
