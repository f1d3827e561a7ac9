"""Tests a hub with a real Matter server and eleven virtual devices of the Matter SDK, from pairing to removal.

`test_real_server.py` runs this file in the namespace. The last line of its output is a JSON object of the figures.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from playwright.async_api import async_playwright, expect

from appliance.adapters.matter.kind import Matter
from appliance.adapters.matter.probe import probe
from appliance.home import events
from firmware import skips
from tests.adapters.matter.test_recordings import DEVICES
from tests.dashboard.conftest import SWITCHES, sheet_link, visiting
from tests.fakes import app as apps
from tests.fakes.app import App, open_app
from tests.fakes.patience import until
from tests.matter.laboratory import NAMES, Laboratory, laboratory

PATIENCE_SECS = 200.0
"""Seconds for the server's own delays. The server noticed a dead device after 159 s."""

COMMANDS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("onoff:1", {"capability": "power", "action": "on"}, {"power": "on"}),
    ("onoff:1", {"capability": "power", "action": "toggle"}, {"power": "off"}),
    ("dimmer:1", {"capability": "brightness", "action": "set", "value": 30}, {"power": "on", "brightness": 30}),
    ("dimmer:1", {"capability": "brightness", "action": "set", "value": 0}, {"power": "off"}),
    (
        "color:1",
        {"capability": "color_temperature", "action": "set", "value": {"value": 2700, "unit": "kelvin"}},
        {"color_temperature": {"value": 2703, "unit": "kelvin"}, "color_mode": "color_temp", "power": "off"},
    ),
    (
        "color:1",
        {"capability": "color_hs", "action": "set", "value": {"hue": 120, "saturation": 100}},
        {"color_hs": {"hue": 120, "saturation": 100}, "color_mode": "hs"},
    ),
    (
        "color:1",
        {"capability": "color_xy", "action": "set", "value": {"x": 0.3, "y": 0.4}},
        {"color_xy": {"x": 0.3, "y": 0.4}, "color_mode": "xy"},
    ),
    ("plug:1", {"capability": "power", "action": "on"}, {"power": "on"}),
    ("cover:1", {"capability": "cover_position", "action": "set", "value": 50}, {}),
    ("cover:1", {"capability": "cover_position", "action": "close"}, {}),
    ("cover:1", {"capability": "cover_position", "action": "stop"}, {}),
    ("cover:1", {"capability": "cover_tilt", "action": "set", "value": 25}, {}),
    ("lock:1", {"capability": "lock", "action": "unlock"}, {"lock": "unlocked"}),
    ("lock:1", {"capability": "lock", "action": "lock"}, {"lock": "locked"}),
    (
        "thermostat:1",
        {"capability": "target_temperature", "action": "set", "value": {"value": 21.5, "unit": "°C"}},
        {"target_temperature": {"value": 21.5, "unit": "°C"}},
    ),
    ("thermostat:1", {"capability": "hvac_mode", "action": "set", "value": "cool"}, {"hvac_mode": "cool"}),
    (
        "thermostat:1",
        {"capability": "target_temperature", "action": "set", "value": {"value": 24.5, "unit": "°C"}},
        {"target_temperature": {"value": 24.5, "unit": "°C"}},
    ),
    ("thermostat:1", {"capability": "hvac_mode", "action": "set", "value": "heat_cool"}, {"hvac_mode": "heat_cool"}),
    ("fan:1", {"capability": "power", "action": "on"}, {"power": "on"}),
    ("fan:1", {"capability": "fan_mode", "action": "set", "value": "high"}, {"fan_mode": "high"}),
    (
        "fan:1",
        {"capability": "custom.matter.fan_control.percent_setting", "action": "set", "value": 60},
        {"custom.matter.fan_control.percent_setting": 60},
    ),
    ("bridge:2", {"capability": "brightness", "action": "set", "value": 77}, {"power": "on", "brightness": 77}),
]
"""Each row: a command, and the resulting attributes of the device."""

SENSED: list[tuple[str, str, str, dict[str, Any], str, Any]] = [
    ("contact", "booleanState", "sensors:1", {"stateValue": False}, "contact", "open"),
    ("temperature", "temperatureMeasurement", "sensors:2", {"measuredValue": 2237}, "temperature", (22.37, "°C")),
    ("humidity", "relativeHumidityMeasurement", "sensors:3", {"measuredValue": 5012}, "humidity", (50.12, "%")),
    ("occupancy", "occupancySensing", "sensors:4", {"occupancy": {"occupied": True}}, "occupancy", "occupied"),
    ("lux", "illuminanceMeasurement", "sensors:5", {"measuredValue": 30103}, "illuminance", 1024),
    ("pressure", "pressureMeasurement", "sensors:6", {"measuredValue": 998}, "pressure", (998.0, "hPa")),
    ("leak", "booleanState", "sensors:7", {"stateValue": True}, "water_leak", True),
    ("air", "airQuality", "sensors:8", {"airQuality": 4}, "air_quality", "poor"),
    ("smoke", "smokeCoAlarm", "sensors:9", {"smokeState": 1}, "smoke", True),
]
"""Each row: a value of a sensor, and the resulting attributes."""


class Proof:
    """The steps of the test, in order."""

    def __init__(self, lab: Laboratory, app: App) -> None:
        self.lab = lab
        self.app = app
        self.figures: dict[str, Any] = {}

    async def run(self) -> None:
        for step in (
            self.pair_eleven,
            self.command_each_cluster,
            self.refuse,
            self.sense,
            self.look_at_the_page,
            self.press,
            self.add_and_remove_bridged,
            self.identify_share_and_pair_again,
            self.kill_a_device,
            self.kill_the_server,
        ):
            began = time.monotonic()
            await step()
            self.figures[f"{step.__name__}_secs"] = round(time.monotonic() - began, 1)
            print(f"{step.__name__}: {self.figures[f'{step.__name__}_secs']} s", flush=True)

    async def shown(self) -> dict[str, dict[str, Any]]:
        """Return the attributes of each device in the API, by its id without the section."""
        devices = (await self.app.get("/devices")).json
        return {each["id"].removeprefix("matter:uid-"): each for each in devices}

    async def until_shown(self, device: str, **attributes: Any) -> None:
        id_ = f"matter:uid-{device}"

        def holds() -> bool:
            found = self.app.hub.registry.find_devices([id_])
            return bool(found) and {**found[0].attributes, **attributes} == found[0].attributes

        try:
            await until(holds, PATIENCE_SECS)
        except TimeoutError:
            raise AssertionError(f"{id_} never showed {attributes}: {(await self.shown()).get(device)}") from None

    async def command(self, device: str, body: Mapping[str, Any]) -> Any:
        return await self.app.post(f"/devices/{quote(f'matter:uid-{device}')}/command", dict(body))

    async def operate(self, operation: str, payload: Mapping[str, Any]) -> Any:
        return await self.app.post(f"/adapters/matter/operations/{operation}", dict(payload))

    async def pair_eleven(self) -> None:
        """Pair the devices over the API, by digits and by the texts of QR codes."""
        took = []
        for number, name in enumerate(NAMES):
            code = self.lab.codes[name]["qrPairingCode" if number % 2 else "manualPairingCode"]
            began = time.monotonic()
            answer = await self.operate("pair", {"code": code})
            took.append(round(time.monotonic() - began, 2))
            assert answer.status == 200, answer.json
        self.figures["pairing_secs"] = took
        shown = await self.shown()
        assert shown.keys() == {each.removeprefix("uid-") for each in DEVICES}
        for id_, (kind, device_class, name, attributes) in DEVICES.items():
            device = shown[id_.removeprefix("uid-")]
            assert (device["kind"], device["info"]["class"], device["name"]) == (kind, device_class, name), device
            assert device["attributes"] == {**attributes, "state": "online"}, device
        self.figures["devices"] = len(shown)
        wrong = await self.operate("pair", {"code": "12345678901"})
        assert wrong.json["code"] == "device_refused" and "could not be paired" in wrong.json["error"], wrong.json
        self.figures["refused_code"] = wrong.json["error"]
        assert (await self.app.get("/adapters/matter")).json["dropped"] == []

    async def command_each_cluster(self) -> None:
        """Check that the hub answers each command once the API returns the command's result."""
        took = []
        for device, body, expected in COMMANDS:
            began = time.monotonic()
            answer = await self.command(device, body)
            took.append(round(time.monotonic() - began, 2))
            assert answer.status == 200, (device, body, answer.json)
            attributes = (await self.shown())[device]["attributes"]
            assert {**attributes, **expected} == attributes, (device, body, attributes)
        self.figures["commands"] = len(took)
        self.figures["command_secs"] = {"median": sorted(took)[len(took) // 2], "most": max(took)}
        await self.until_shown("cover:1", cover_tilt=25)

    async def refuse(self) -> None:
        """Check that the error contains Matter's status if a device refuses a command."""
        wrong_code = await self.command("lock:1", {"capability": "lock", "action": "unlock", "code": "1234"})
        assert wrong_code.json["code"] == "device_refused" and "status 0x01" in wrong_code.json["error"], (
            wrong_code.json
        )
        hot = {"capability": "target_temperature", "action": "set", "value": {"value": 31.5, "unit": "°C"}}
        too_hot = await self.command("thermostat:1", hot)
        assert too_hot.json["code"] == "device_refused" and "status 0x87" in too_hot.json["error"], too_hot.json
        self.figures["refusals"] = [wrong_code.json["error"], too_hot.json["error"]]

    async def sense(self) -> None:
        """Check that the API returns the changes that happen at the devices."""
        for endpoint, behavior, device, change, attribute, value in SENSED:
            await self.lab.control("most", "sensors", endpoint=endpoint, behavior=behavior, set=change)
            expected = {"value": value[0], "unit": value[1]} if isinstance(value, tuple) else value
            await self.until_shown(device, **{attribute: expected})

    async def look_at_the_page(self) -> None:
        """If a browser is installed, check that the page displays the API's values of each device."""
        program = skips.find_program("chromium")
        if program is None:
            self.figures["page"] = skips.needs("chromium")
            return
        shown = await self.shown()
        readings = {"Virtual sensors 2": "22.4°C", "Virtual sensors 3": "50.1%"}
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=program, args=list(SWITCHES))
            async with visiting(browser, self.app) as visit:
                await visit.open()
                for device in shown.values():
                    found = sheet_link(visit.page, device["id"])
                    await expect(found).to_have_count(1)
                    await expect(found).to_contain_text(readings.get(device["name"], ""))
                    if "power" in device["attributes"]:
                        is_on = str(device["attributes"]["power"] == "on").lower()
                        switch = visit.page.get_by_role("switch", name=f"{device['name']}: Power").last
                        await expect(switch).to_have_attribute("aria-checked", is_on)
            await browser.close()
        self.figures["page"] = f"{len(shown)} devices as the API has them"

    async def press(self) -> None:
        """Press the first button once, then twice in quick succession."""
        for count, event in ((1, "single"), (2, "double")):
            for _ in range(count):
                for position in (1, 0):
                    pressed = {"currentPosition": position}
                    await self.lab.control("most", "switch", endpoint="one", behavior="switch", set=pressed)
                    await asyncio.sleep(0.1)
            began = time.monotonic()
            await until(lambda event=event: self.pressed(event), PATIENCE_SECS)  # type: ignore[misc]
            self.figures[f"{event}_press_secs"] = round(time.monotonic() - began, 2)

    def pressed(self, event: str) -> bool:
        """Return whether the first button sent this event."""
        found = (each for each in self.app.events if isinstance(each, events.DeviceEvent))
        return any((each.device_id, each.event) == ("matter:uid-switch:1", event) for each in found)

    async def add_and_remove_bridged(self) -> None:
        """Add a device to the bridge, command it, and remove it."""
        await self.lab.control("most", "bridge", add={"id": "late", "name": "Late lamp"})
        await self.until_shown("bridge:4", power="off")
        late = (await self.shown())["bridge:4"]
        assert (late["name"], late["info"]["parent_id"]) == ("Late lamp", "matter:uid-bridge:1")
        assert (await self.command("bridge:4", {"capability": "power", "action": "on"})).status == 200
        await self.lab.control("most", "bridge", remove="late")
        await until(lambda: not self.app.hub.registry.find_devices(["matter:uid-bridge:4"]), PATIENCE_SECS)
        gone = {"endpoint": "probe", "behavior": "bridgedDeviceBasicInformation", "set": {"reachable": False}}
        await self.lab.control("most", "bridge", **gone)
        await self.until_shown("bridge:3", state="unavailable")
        await self.lab.control("most", "bridge", **{**gone, "set": {"reachable": True}})
        await self.until_shown("bridge:3", state="online")

    async def identify_share_and_pair_again(self) -> None:
        """Identify a device, share it with another app, unpair it, and pair it again under the same id."""
        fan = {"device_id": "matter:uid-fan:1"}
        assert (await self.operate("identify", fan)).status == 200
        shared = (await self.operate("share", fan)).json["result"]
        assert len(shared["code"]) == 11 and shared["qr"].startswith("MT:"), shared
        removed = await self.operate("unpair", fan)
        assert removed.json["result"] == {"removed": ["matter:uid-fan:1"]}, removed.json
        assert "fan:1" not in await self.shown()
        again = await self.operate("pair", {"code": self.lab.codes["fan"]["manualPairingCode"]})
        assert again.status == 200 and again.json["result"]["devices"] == ["matter:uid-fan:1"], again.json

    async def kill_a_device(self) -> None:
        """Kill a device. The next command fails within 5 s, and the device is unavailable until it returns."""
        before = (await self.shown())["plug:1"]["attributes"]
        await self.lab.end("plug", signal.SIGKILL)
        began = time.monotonic()
        answer = await self.command("plug:1", {"capability": "power", "action": "toggle"})
        self.figures["command_to_a_dead_device_secs"] = round(time.monotonic() - began, 2)
        assert answer.json["code"] == "device_unreachable", answer.json
        self.figures["command_to_a_dead_device"] = answer.json["error"]
        assert (await self.shown())["plug:1"]["attributes"] == {**before, "state": "unavailable"}
        await self.lab.start_devices("plug", "plug")
        began = time.monotonic()
        await self.until_shown("plug:1", state="online")
        self.figures["dead_device_back_secs"] = round(time.monotonic() - began, 1)
        toggle = {"capability": "power", "action": "toggle"}
        assert (await self.command("plug:1", toggle)).status == 200

    async def kill_the_server(self) -> None:
        """Kill the server. All devices go offline, and later return. No value changes, and no trigger fires."""
        for how in (signal.SIGKILL, signal.SIGTERM):
            before = {id_: each["attributes"] for id_, each in (await self.shown()).items()}
            self.app.events.clear()
            await self.lab.end("server", how)
            await until(lambda: self.states() == {"offline"}, PATIENCE_SECS)
            if how is signal.SIGTERM:
                colder = {
                    "endpoint": "temperature",
                    "behavior": "temperatureMeasurement",
                    "set": {"measuredValue": 777},
                }
                await self.lab.control("most", "sensors", **colder)
                for position in (1, 0):  # this press is lost
                    pressed = {"currentPosition": position}
                    await self.lab.control("most", "switch", endpoint="two", behavior="switch", set=pressed)
                before["sensors:2"] = {**before["sensors:2"], "temperature": {"value": 7.77, "unit": "°C"}}
            await self.lab.start_server()
            began = time.monotonic()
            await until(lambda: "online" in self.states(), PATIENCE_SECS)
            first = round(time.monotonic() - began, 1)
            await until(lambda: self.states() == {"online"}, PATIENCE_SECS)
            await self.until_shown("sensors:2", temperature=before["sensors:2"]["temperature"])
            self.figures[f"server_after_{how.name}_first_and_all_secs"] = [first, round(time.monotonic() - began, 1)]
            after = {id_: each["attributes"] for id_, each in (await self.shown()).items()}
            assert after == before, {
                id_: (before.get(id_), each) for id_, each in after.items() if each != before.get(id_)
            }
            changed = sorted({id_ for each in self.app.events if (id_ := _changed_device(each))})
            assert changed == (["matter:uid-sensors:2"] if how is signal.SIGTERM else []), changed
            assert not [each for each in self.app.events if isinstance(each, events.DeviceEvent)]

    def states(self) -> set[Any]:
        """Return, for each device, whether it is reachable."""
        return {each.attributes["state"] for each in self.app.hub.registry.list_devices()}


def _changed_device(event: events.Event) -> str | None:
    """Return the device whose values the event changes."""
    if not isinstance(event, events.DeviceStateChanged):
        return None
    before = {} if event.previous is None else event.previous.attributes
    return event.device.id if {**before, "state": ""} != {**event.device.attributes, "state": ""} else None


async def main(paths: Mapping[str, str]) -> None:
    """Run all steps, and print the figures."""
    async with laboratory(paths) as lab:
        began = time.monotonic()
        await lab.start_server()
        figures: dict[str, Any] = {"server_start_secs": round(time.monotonic() - began, 1)}
        await lab.start_devices("most", *(name for name in NAMES if name != "plug"))
        await lab.start_devices("plug", "plug")
        well, figures["doctor"] = await asyncio.to_thread(probe, Matter())
        assert well, figures["doctor"]
        apps.HAS_DASHBOARD = True
        async with open_app(adapters={"matter": Matter()}) as app:
            proof = Proof(lab, app)
            proof.figures |= figures
            await proof.run()
            print(json.dumps(proof.figures, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
