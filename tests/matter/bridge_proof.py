"""Tests the plugin for Matterbridge with a hub, Matterbridge, and a real controller. The hub, Matterbridge, and the
controller are each killed once.

`test_real_server.py` runs this file in the namespace. The last line of its output is a JSON object of the figures.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import random
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from tests.fakes.patience import until_async
from tests.fakes.process import ROOT
from tests.fakes.programs import need
from tests.matter.laboratory import START_SECS, Laboratory, laboratory

KEY = "a-key-for-the-proof-alone"
VARIABLES = {"LARES_MASTER_KEY": KEY, "PYTHONPATH": str(ROOT)}
HUB = "http://127.0.0.1:3000"
SERVER = "ws://127.0.0.1:5580/ws"
PATIENCE_SECS = 200.0
MANY = 50
REPORTS = 3000
"""The changes of a busy day, which are replayed as fast as the hub accepts them."""

CELSIUS = {"unit": "°C"}

DEVICES: Mapping[str, Mapping[str, Any]] = {
    "lamp": {
        "kind": "Light",
        "power": "off",
        "brightness": 40,
        "color_temperature": {"value": 3000, "unit": "kelvin"},
    },
    "strip": {"kind": "Light", "power": "off", "brightness": 70, "color_hs": {"hue": 10, "saturation": 50}},
    "dimmer": {"kind": "Light", "power": "off", "brightness": 10},
    "bulb": {"kind": "Light", "power": "off"},
    "plug": {"kind": "Switch", "class": "plug", "power": "on"},
    "blind": {"kind": "Switch", "class": "cover", "cover_position": 100},
    "awning": {"kind": "Switch", "class": "cover", "cover_position": 40, "cover_tilt": 0},
    "garage": {"kind": "Switch", "class": "cover", "garage_door": "closed"},
    "door": {"kind": "Switch", "class": "lock", "lock": "locked"},
    "heater": {
        "kind": "Switch",
        "class": "climate",
        "temperature": {"value": 20.5, **CELSIUS},
        "target_temperature": {"value": 21, **CELSIUS},
        "hvac_mode": "heat",
    },
    "cooler": {
        "kind": "Switch",
        "class": "climate",
        "temperature": {"value": 26, **CELSIUS},
        "target_temperature": {"value": 22, **CELSIUS},
        "hvac_mode": "cool",
    },
    "fan": {"kind": "Switch", "class": "fan", "power": "off"},
    "relay": {"kind": "Switch", "power": "off"},
    "air": {
        "kind": "Sensor",
        "temperature": {"value": 19.5, **CELSIUS},
        "humidity": {"value": 45, "unit": "%"},
        "pressure": {"value": 1002, "unit": "hPa"},
        "air_quality": "good",
        "battery": 80,
    },
    "window": {"kind": "Sensor", "contact": "closed", "battery": 15},
    "motion": {"kind": "Sensor", "occupancy": "unoccupied", "illuminance": 100},
    "stairs": {"kind": "Sensor", "class": "motion", "motion": "clear"},
    "smoke": {"kind": "Sensor", "smoke": False},
    "leak": {"kind": "Sensor", "water_leak": False},
    "remote": {"kind": "Sensor", "class": "button", "battery": 50},
}
"""The device types that the contract lists. Each row contains the kind, the class, and the first values of a
device."""

SCENE = """
return { id = "calm", name = "Calm", execute = function(ctx)
  ctx:command("virtual:bulb", { capability = "power", action = "off" })
end }
"""

NOT_TIMED = {"transitionTime": 0, "optionsMask": 1, "optionsOverride": 1}

COMMANDS: list[tuple[str, int, str, dict[str, Any], dict[str, Any]]] = [
    ("lamp", 6, "On", {}, {"power": "on"}),
    ("lamp", 8, "MoveToLevel", {"level": 254, **NOT_TIMED}, {"brightness": 100}),
    (
        "lamp",
        768,
        "MoveToColorTemperature",
        {"colorTemperatureMireds": 250, **NOT_TIMED},
        {"color_temperature": {"value": 4000, "unit": "kelvin"}},
    ),
    (
        "strip",
        768,
        "MoveToHueAndSaturation",
        {"hue": 127, "saturation": 254, **NOT_TIMED},
        {"color_hs": {"hue": 180, "saturation": 100}},
    ),
    (
        "strip",
        768,
        "MoveToColor",
        {"colorX": 45875, "colorY": 19661, **NOT_TIMED},
        {"color_hs": {"hue": 0, "saturation": 100}},
    ),
    ("relay", 6, "On", {}, {"power": "on"}),
    ("dimmer", 8, "MoveToLevelWithOnOff", {"level": 127, **NOT_TIMED}, {"power": "on", "brightness": 50}),
    ("bulb", 6, "Toggle", {}, {"power": "on"}),
    ("plug", 6, "Off", {}, {"power": "off"}),
    ("blind", 258, "GoToLiftPercentage", {"liftPercent100thsValue": 7000}, {"cover_position": 30}),
    ("blind", 258, "UpOrOpen", {}, {"cover_position": 100}),
    ("awning", 258, "GoToTiltPercentage", {"tiltPercent100thsValue": 2500}, {"cover_tilt": 75}),
    ("awning", 258, "DownOrClose", {}, {"cover_position": 0}),
    ("garage", 258, "UpOrOpen", {}, {"garage_door": "open"}),
    ("garage", 258, "DownOrClose", {}, {"garage_door": "closed"}),
    ("door", 257, "UnlockDoor", {}, {"lock": "unlocked"}),
    ("door", 257, "LockDoor", {}, {"lock": "locked"}),
]
"""Each row: a command to a cluster, and the resulting attributes of the hub's device."""

WRITES: list[tuple[str, str, Any, dict[str, Any]]] = [
    ("heater", "513/18", 1900, {"target_temperature": {"value": 19, **CELSIUS}}),
    ("heater", "513/18", 2350, {"target_temperature": {"value": 23.5, **CELSIUS}}),
    ("heater", "513/28", 0, {"hvac_mode": "off"}),
    ("heater", "513/28", 4, {"hvac_mode": "heat"}),
    ("cooler", "513/17", 2400, {"target_temperature": {"value": 24, **CELSIUS}}),
    ("cooler", "513/28", 0, {"hvac_mode": "off"}),
    ("cooler", "513/28", 3, {"hvac_mode": "cool"}),
    ("fan", "514/2", 50, {"power": "on"}),
    ("fan", "514/0", 0, {"power": "off"}),
]

CHANGES: list[tuple[str, dict[str, list[Any]]]] = [
    ("lamp", {"power": ["on", "off"], "brightness": [1, 33, 100]}),
    ("plug", {"power": ["on", "off"]}),
    ("blind", {"cover_position": [0, 50, 100]}),
    ("door", {"lock": ["locked", "unlocked"]}),
    (
        "heater",
        {"temperature": [{"value": each, **CELSIUS} for each in (18, 20.25, 23)], "hvac_mode": ["off", "heat"]},
    ),
    ("air", {"humidity": [{"value": each, "unit": "%"} for each in (20, 44.5)], "battery": [10, 90]}),
    ("air", {"temperature": [{"value": each, **CELSIUS} for each in (-5, 21.37)], "air_quality": ["poor", "good"]}),
    ("window", {"contact": ["open", "closed"]}),
    ("motion", {"occupancy": ["occupied", "unoccupied"], "illuminance": [0, 1, 5000]}),
    ("smoke", {"smoke": [True, False]}),
    ("leak", {"water_leak": [True, False]}),
]
"""Reports of the devices in a day."""


def number(value: Any) -> Any:
    return value["value"] if isinstance(value, dict) else value


EQUAL: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "power": ("6/0", lambda value: value == "on"),
    "brightness": ("8/0", lambda value: max(1, round(value * 2.54))),
    "color_temperature": ("768/7", lambda value: round(1e6 / number(value))),
    "color_hs": ("768/0", lambda value: round(value["hue"] * 254 / 360)),
    "cover_position": ("258/14", lambda value: (100 - value) * 100),
    "cover_tilt": ("258/15", lambda value: (100 - value) * 100),
    "lock": ("257/0", {"locked": 1, "unlocked": 2}.get),
    "target_temperature": ("513/18", lambda value: round(number(value) * 100)),
    "hvac_mode": ("513/28", {"off": 0, "cool": 3, "heat": 4}.get),
    "temperature": ("1026/0", lambda value: round(number(value) * 100)),
    "humidity": ("1029/0", lambda value: round(number(value) * 100)),
    "pressure": ("1027/0", lambda value: round(number(value))),
    "illuminance": ("1024/0", lambda value: round(10000 * math.log10(value) + 1) if value else 0),
    "contact": ("69/0", lambda value: value == "closed"),
    "occupancy": ("1030/0", lambda value: value == "occupied"),
    "motion": ("1030/0", lambda value: value == "detected"),
    "smoke": ("92/1", lambda value: 2 if value else 0),
    "water_leak": ("69/0", bool),
    "air_quality": ("91/0", {"good": 1, "poor": 4}.get),
    "battery": ("47/12", lambda value: value * 2),
}
"""For each attribute of the hub, the cluster and attribute of Matter, and the equivalent value in Matter."""


class Controller:
    """A client of the controller server."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self._ids = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self.node = 0
        self._session: aiohttp.ClientSession | None = None

    async def open(self, *, listens: bool = True) -> None:
        self._session = aiohttp.ClientSession()
        self._socket = await self._session.ws_connect(SERVER, max_msg_size=0)
        self._task = asyncio.create_task(self._read())
        if listens:
            await self.call("start_listening")

    async def close(self) -> None:
        if self._session is not None:
            self._task.cancel()
            await self._session.close()

    async def _read(self) -> None:
        async for message in self._socket:
            reported = json.loads(message.data)
            if "event" in reported:
                self.events.append(reported)
            elif (future := self._waiting.pop(reported.get("message_id", ""), None)) is not None:
                future.set_result(reported)

    async def call(self, command: str, **arguments: Any) -> Any:
        """Return the result. Raise `RuntimeError` with the error of the server."""
        id_ = str(next(self._ids))
        future = self._waiting[id_] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"message_id": id_, "command": command, "args": arguments})
        reported = await asyncio.wait_for(future, PATIENCE_SECS)
        if "error_code" in reported:
            raise RuntimeError(f"{command} {arguments}: {reported['error_code']} {reported.get('details')}")
        return reported["result"]

    async def attributes(self) -> dict[str, Any]:
        """Return the values that the controller has received by subscription, keyed by endpoint/cluster/attribute.

        Use another connection, because the server drops a client that reads many events too slowly.
        """
        reader = Controller()
        await reader.open(listens=False)
        try:
            found = await reader.call("get_node", node_id=self.node)
        finally:
            await reader.close()
        return {**found["attributes"], "available": found["available"]}


class Proof:
    """The steps of the test, in order."""

    def __init__(self, lab: Laboratory, modules: Path) -> None:
        self.lab = lab
        self.modules = modules
        self.controller = Controller()
        self.figures: dict[str, Any] = {}

    async def run(self) -> None:
        for step in (
            self.pair,
            self.command_each_type,
            self.write_each_setting,
            self.press,
            self.name_and_move,
            self.run_rename_and_remove_a_scene,
            self.limit_to_voice,
            self.kill_the_hub,
            self.kill_the_bridge,
            self.kill_the_controller,
            self.begin_without_the_hub,
            self.show_fifty,
            self.replay_a_day,
        ):
            began = time.monotonic()
            await step()
            self.figures[f"{step.__name__}_secs"] = round(time.monotonic() - began, 1)
            print(f"{step.__name__}: {self.figures[f'{step.__name__}_secs']} s", flush=True)

    # --- processes ---

    def write_home(self, more: int = 0) -> None:
        """Write the configuration of the hub, with this number of additional lamps."""
        lamps = {f"more{each}": {"kind": "Light", "power": "off", "brightness": 50} for each in range(more)}
        sections = []
        devices: dict[str, Mapping[str, Any]] = {**DEVICES, **lamps}
        for id_, row in devices.items():
            own = {key: row[key] for key in ("kind", "class") if key in row}
            values = {key: value for key, value in row.items() if key not in own}
            fields = {"id": id_, "name": f"My {id_}", **own, "attributes": values}
            lines = [f"{key} = {toml(value)}" for key, value in fields.items()]
            sections.append("\n".join(["[[adapters.virtual.devices]]", *lines]))
        folder = self.lab.folder / "home" / "config"
        (folder / "scenes").mkdir(parents=True, exist_ok=True)
        (folder / "scenes" / "calm.lua").write_text(SCENE)
        head = '[api]\nbind_address = "127.0.0.1:3000"\n[adapters.virtual]\n'
        (folder / "default.toml").write_text(head + "\n".join(sections) + "\n")

    async def start_hub(self) -> None:
        await self.lab.start("hub", *self._lares("run"), variables=VARIABLES)
        await until_async(self._hub_answers, START_SECS)

    def _lares(self, command: str) -> tuple[str, ...]:
        home = self.lab.folder / "home"
        paths = ("--config", str(home / "config" / "default.toml"), "--data-dir", str(home / "data"))
        return (sys.executable, "-m", "appliance", command, *paths)

    async def _hub_answers(self) -> bool:
        try:
            return bool(await self.hub("GET", "/ready"))
        except (aiohttp.ClientError, AssertionError):
            return False

    async def hub(self, method: str, path: str, body: Any = None) -> Any:
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session:
            async with session.request(method, HUB + path, json=body) as answer:
                assert answer.status < 300, await answer.text()
                return None if answer.status == 204 else await answer.json()

    def prepare_bridge(self) -> None:
        """Copy the plugin, with the modules of Matterbridge, and write the plugin's settings."""
        plugin = self.lab.folder / "plugin"
        shutil.copytree(ROOT / "firmware" / "matterbridge", plugin, ignore=shutil.ignore_patterns("node_modules"))
        (plugin / "node_modules").mkdir()
        (plugin / "node_modules" / "matterbridge").symlink_to(self.modules)
        (plugin / "node_modules" / "ws").symlink_to(self.modules / "node_modules" / "ws")
        settings = json.loads((plugin / "matterbridge-lares.config.json").read_text())
        folder = self.lab.folder / "bridge" / ".matterbridge"
        folder.mkdir(parents=True)
        (folder / "matterbridge-lares.config.json").write_text(json.dumps({**settings, "key": KEY}))

    async def start_bridge(self) -> None:
        await self.lab.start(
            "bridge", *self._matterbridge("-bridge", "-mdnsinterface", "m0", "-novirtual", "-no-ansi")
        )

    def _matterbridge(self, *arguments: str) -> tuple[str, ...]:
        program = self.modules / "bin" / "matterbridge.js"
        return (need("node"), str(program), "-homedir", str(self.lab.folder / "bridge"), *arguments)

    async def add_plugin(self) -> None:
        await self.lab.start("add", *self._matterbridge("-add", str(self.lab.folder / "plugin")))
        await until_async(lambda: self.lab.has_ended("add"), START_SECS)

    # --- values of controller and hub ---

    async def endpoints(self, shown: Mapping[str, Any]) -> dict[str, list[int]]:
        """Return the endpoints of each device, by the name that the controller reads. The first endpoint in each
        list is that of the device itself."""
        own = {int(key.split("/")[0]): value for key, value in shown.items() if key.endswith("/57/5")}
        parts = {int(key.split("/")[0]): value for key, value in shown.items() if key.endswith("/29/3")}
        return {name: [endpoint, *parts.get(endpoint, [])] for endpoint, name in own.items()}

    async def differences(self) -> list[str]:
        """Return the differences between controller and hub."""
        shown = await self.controller.attributes()
        places = await self.endpoints(shown)
        wrong = [] if shown["available"] else ["the bridge is not available"]
        for device in await self.hub("GET", "/devices"):
            if device["name"] not in places:
                wrong.append(f"{device['name']} is missing")
                continue
            found = places[device["name"]]
            if shown.get(f"{found[0]}/57/17") is not (device["attributes"]["state"] == "online"):
                wrong.append(f"{device['name']} is reachable: {shown.get(f'{found[0]}/57/17')}")
            wrong += self._values_that_differ(device, found, shown)
        return wrong

    def _values_that_differ(self, device: Any, endpoints: list[int], shown: Mapping[str, Any]) -> list[str]:
        wrong = []
        is_thermostat = "target_temperature" in device["attributes"]
        for name, value in device["attributes"].items():
            if name not in EQUAL or (name == "power" and device["info"].get("class") == "fan"):
                continue
            path, convert = EQUAL[name]
            path = "513/0" if name == "temperature" and is_thermostat else path
            seen = [shown[f"{each}/{path}"] for each in endpoints if f"{each}/{path}" in shown]
            seen = [bool(each) if path == "1030/0" else each for each in seen]
            if seen != [convert(value)]:
                wrong.append(f"{device['name']} {name} {value}: {seen}")
        return wrong

    async def until_equal(self) -> None:
        """Wait until the controller reports the hub's values."""
        began, found = time.monotonic(), ["nothing was compared"]
        while found and time.monotonic() - began < PATIENCE_SECS:
            found = await self.differences()
            await asyncio.sleep(0.5)
        assert not found, found[:20]

    async def until_hub_shows(self, id_: str, expected: Mapping[str, Any]) -> None:
        async def holds() -> bool:
            shown = (await self.hub("GET", f"/devices/virtual:{id_}"))["attributes"]
            return bool(expected.items() <= shown.items())

        await until_async(holds, 30)

    async def change(self, id_: str, attributes: Mapping[str, Any]) -> None:
        """Make a virtual device report a value. Return once the hub reports the value."""
        await self.hub("POST", f"/hooks/device:virtual:{id_}", {"attributes": attributes})
        await self.until_hub_shows(id_, attributes)

    async def place(self, id_: str) -> int:
        return (await self.endpoints(await self.controller.attributes()))[f"My {id_}"][0]

    # --- steps ---

    async def pair(self) -> None:
        """Start all processes, and pair the bridge."""
        self.write_home()
        self.prepare_bridge()
        await self.add_plugin()
        await self.start_hub()
        await self.start_bridge()
        await self.lab.start_server()
        log, pattern = self.lab.folder / "bridge.log", r"[Mm]anual (?:pairing )?[Cc]ode:?\W*([0-9-]{11,13})"
        await until_async(lambda: found(pattern, log), PATIENCE_SECS)
        codes = re.findall(pattern, await asyncio.to_thread(log.read_text))
        await self.controller.open()
        node = await self.controller.call("commission_with_code", code=codes[-1], network_only=True)
        self.controller.node = node["node_id"]
        await self.until_equal()

    async def command_each_type(self) -> None:
        """Command each type of device. The hub answers once the device reports the result."""
        for id_, cluster, name, payload, expected in COMMANDS:
            timed = {"timed_request_timeout_ms": 2000} if cluster == 257 else {}
            await self.controller.call(
                "device_command",
                node_id=self.controller.node,
                endpoint_id=await self.place(id_),
                cluster_id=cluster,
                **{"command_name": name, "payload": payload, **timed},
            )
            shown = (await self.hub("GET", f"/devices/virtual:{id_}"))["attributes"]
            assert expected.items() <= shown.items(), (id_, name, expected, shown)
        self.figures["commands"] = len(COMMANDS)
        await self.until_equal()

    async def write_each_setting(self) -> None:
        for id_, path, value, expected in WRITES:
            place = f"{await self.place(id_)}/{path}"
            shown = await self.controller.attributes()
            if place not in shown:  # the thermostat can only heat
                continue
            await self.controller.call(
                "write_attribute", node_id=self.controller.node, attribute_path=place, value=value
            )
            await self.until_hub_shows(id_, expected)
        await self.until_equal()

    async def press(self) -> None:
        self.controller.events.clear()
        await self.hub("POST", "/hooks/device:virtual:remote", {"event": "double"})

        async def came() -> bool:
            return any(
                each["event"] == "node_event" and each["data"]["cluster_id"] == 59 for each in self.controller.events
            )

        await until_async(came, 30)

    async def until_named(self, *names: str, gone: str = "") -> dict[str, int]:
        """Wait until the controller lists these names, and no longer lists those in `gone`. Return the endpoint
        for each name."""
        found: dict[str, list[int]] = {}

        async def holds() -> bool:
            found.clear()
            found.update(await self.endpoints(await self.controller.attributes()))
            return {*names} <= found.keys() and gone not in found

        await until_async(holds, 60)
        return {name: own for name, (own, *_) in found.items()}

    async def name_and_move(self) -> None:
        """Check that a name begins with the room, and that the serial number does not change."""

        async def serial(name: str, gone: str = "") -> Any:
            own = (await self.until_named(name, gone=gone))[name]
            return (await self.controller.attributes())[f"{own}/57/15"]

        before = await serial("My plug")
        await self.hub("POST", "/rooms", {"id": "hall", "name": "Hall"})
        for path, body, name, gone in (
            ("room", {"room_id": "hall"}, "Hall My plug", "My plug"),
            ("name", {"name": "Heater in the hall"}, "Heater in the hall", "Hall My plug"),
            ("room", {"room_id": None}, "Heater in the hall", ""),
            ("name", {"name": "My plug"}, "My plug", "Heater in the hall"),
        ):
            await self.hub("POST", f"/devices/virtual:plug/{path}", body)
            assert await serial(name, gone) == before
        await self.until_equal()

    async def run_rename_and_remove_a_scene(self) -> None:
        file = self.lab.folder / "home" / "config" / "scenes" / "calm.lua"
        place = (await self.until_named("Calm"))["Calm"]
        await self.change("bulb", {"power": "on"})
        await self.controller.call(
            "device_command",
            node_id=self.controller.node,
            endpoint_id=place,
            cluster_id=6,
            command_name="On",
            payload={},
        )
        await self.until_hub_shows("bulb", {"power": "off"})

        async def is_off() -> bool:
            return (await self.controller.attributes())[f"{place}/6/0"] is False

        await until_async(is_off, 30)
        file.write_text(SCENE.replace("Calm", "Quiet"))
        await self.hub("POST", "/scenes/reload")
        await self.until_named("Quiet", gone="Calm")
        file.unlink()
        await self.hub("POST", "/scenes/reload")
        await self.until_named(gone="Quiet")
        file.write_text(SCENE)
        await self.hub("POST", "/scenes/reload")
        await self.until_named("Calm")

    async def limit_to_voice(self) -> None:
        """Check that a group `voice` limits the bridge to the group's members and the scenes."""
        await self.hub("POST", "/groups", {"id": "voice", "name": "Voice", "members": ["virtual:lamp"]})
        await self.until_named("My lamp", "Calm", gone="My leak")

        async def is_limited() -> bool:
            return set(await self.endpoints(await self.controller.attributes())) <= {"My lamp", "Calm"}

        await until_async(is_limited, 30)
        await self.hub("DELETE", "/groups/voice")
        await self.until_equal()

    async def _is_lost(self) -> bool:
        """Return whether the controller reports every device as unreachable."""
        shown = await self.controller.attributes()
        paths = [each for each in shown if each.endswith("/57/17")]
        return bool(paths) and not any(shown[each] for each in paths)

    async def kill_the_hub(self) -> None:
        await self.lab.end("hub", signal.SIGKILL)

        await until_async(self._is_lost, PATIENCE_SECS)
        await self.start_hub()
        await self.change("window", {"contact": "open"})
        await self.until_equal()

    async def kill_the_bridge(self) -> None:
        before = await self.endpoints(await self.controller.attributes())
        await self.lab.end("bridge", signal.SIGKILL)
        await self.change("window", {"contact": "closed"})
        await self.start_bridge()
        await until_async(
            lambda: found("Server node for Matterbridge is online", self.lab.folder / "bridge.log"), START_SECS
        )
        await self.until_equal()
        assert await self.endpoints(await self.controller.attributes()) == before

    async def kill_the_controller(self) -> None:
        await self.controller.close()
        await self.lab.end("server", signal.SIGKILL)
        await self.change("motion", {"occupancy": "occupied"})
        await self.lab.start_server()
        node, self.controller = self.controller.node, Controller()
        self.controller.node = node
        await self.controller.open()
        await self.until_equal()

    async def begin_without_the_hub(self) -> None:
        """Start the bridge before the hub, as may happen after a power cut. Check that the controller loses no
        device."""
        before = await self.endpoints(await self.controller.attributes())
        await self.lab.end("hub", signal.SIGKILL)
        await self.lab.end("bridge", signal.SIGKILL)
        self.controller.events.clear()
        await self.start_bridge()
        await until_async(lambda: found("the hub does not answer yet", self.lab.folder / "bridge.log"), PATIENCE_SECS)
        await until_async(
            lambda: found("Server node for Matterbridge is online", self.lab.folder / "bridge.log"), START_SECS
        )
        await until_async(self._is_lost, PATIENCE_SECS)
        assert await self.endpoints(await self.controller.attributes()) == before
        assert not [each for each in self.controller.events if each["event"] == "endpoint_removed"]
        await self.start_hub()
        await self.until_equal()

    async def show_fifty(self) -> None:
        await self.controller.close()
        self.write_home(MANY)
        await self.lab.start("reload", *self._lares("reload"), variables=VARIABLES)
        await until_async(lambda: self.lab.has_ended("reload"), START_SECS)
        await self.until_equal()
        self.figures["devices"] = len(await self.hub("GET", "/devices"))

    async def replay_a_day(self) -> None:
        """Replay the changes of a day without pauses."""
        chance = random.Random(4)
        values: dict[str, list[Any]] = {"power": ["on", "off"], "brightness": [5, 60, 100]}
        lamps = [(f"more{each}", values) for each in range(MANY)]
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session:
            for _ in range(REPORTS):
                id_, rows = chance.choice(CHANGES if chance.random() < 0.5 else lamps)
                change = {name: chance.choice(each) for name, each in rows.items()}
                async with session.post(f"{HUB}/hooks/device:virtual:{id_}", json={"attributes": change}) as answer:
                    assert answer.status == 200, await answer.text()
        self.figures["reports"] = REPORTS
        await self.until_equal()


async def found(pattern: str, log: Path) -> bool:
    return re.search(pattern, await asyncio.to_thread(log.read_text)) is not None


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {toml(each)}' for key, each in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)


async def prove(paths: Mapping[str, str]) -> None:
    async with laboratory(paths) as lab:
        proof = Proof(lab, Path(paths["modules"]))
        try:
            await proof.run()
        except BaseException:
            for name in ("hub", "bridge", "server"):
                print(
                    f"--- {name}", *(lab.folder / f"{name}.log").read_text().splitlines()[-30:], sep="\n", flush=True
                )
            raise
        finally:
            await proof.controller.close()
    print(json.dumps(proof.figures))


if __name__ == "__main__":
    asyncio.run(prove(json.loads(sys.argv[1])))
