"""A simulator of Tasmota devices, written from the public documentation: announcements, states, and responses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.adapters.mqtt.captures import Sent

MAC = "AABBCC0000A1"

BASE: Mapping[str, Any] = {
    "ip": "192.168.1.5", "dn": "Plug", "fn": ["Plug", None, None, None], "hn": "tA1-0161", "mac": MAC,
    "md": "Generic", "ty": 0, "if": 0, "ofln": "Offline", "onln": "Online", "sw": "14.4.1",
    "state": ["OFF", "ON", "TOGGLE", "HOLD"], "t": "tA1", "ft": "%prefix%/%topic%/", "tp": ["cmnd", "stat", "tele"],
    "rl": [0] * 8, "swc": [-1] * 8, "swn": [None] * 8, "btn": [0] * 8,
    "so": {"4": 0, "11": 0, "13": 0, "17": 0, "20": 0, "30": 0, "68": 0, "73": 0, "82": 0, "114": 0, "117": 0},
    "lk": 1, "lt_st": 0, "bat": 0, "dslp": 0, "sho": [], "sht": [], "ver": 1,
}  # fmt: skip
"""The configuration of a device without outputs, as announced by version 14."""


class TasmotaDevice:
    """One device, which stores the values of its outputs, and responds to each command as the firmware does."""

    def __init__(self, shown: Mapping[str, Any], sensors: Mapping[str, Any], **config: Any) -> None:
        options = config.get("so", {})
        self.config = {**BASE, **config, "so": {**BASE["so"], **options} if isinstance(options, dict) else options}
        self.state = dict(shown)
        self.sensors = dict(sensors)

    @property
    def announcements(self) -> tuple[Sent, ...]:
        """The retained messages: both discovery messages, and the status of a connected device."""
        prefix = f"tasmota/discovery/{MAC}"
        config, sensors = json.dumps(self.config), json.dumps({"sn": self.sensors, "ver": 1})
        return (
            Sent(f"{prefix}/config", config.encode(), retain=True),
            Sent(f"{prefix}/sensors", sensors.encode(), retain=True),
            Sent("tele/tA1/LWT", b"Online", retain=True),
        )

    def answers(self, topic: str, payload: str) -> list[tuple[str, str]]:
        """Return the messages after a command: the response, and the state if the command requests it."""
        name = topic.removeprefix("cmnd/tA1/")
        if name == "STATUS":
            return [("stat/tA1/STATUS10", json.dumps({"StatusSNS": self.sensors}))]
        if name == "STATE":
            return [("tele/tA1/STATE", json.dumps(self.state))]
        changed = self._changed(name, payload)
        self.state |= changed
        return [("stat/tA1/RESULT", json.dumps(changed))]

    def _changed(self, name: str, payload: str) -> dict[str, Any]:
        words = self.config["state"]
        if name.startswith("POWER"):
            key = name if name in self.state else "POWER"
            return {key: words[words.index(payload)]}
        if name.startswith("Shutter"):
            return self._moved(name, payload)
        if name.startswith("HsbColor"):
            parts = self.state["HSBColor"].split(",")
            parts[int(name[-1]) - 1] = payload
            return {**self._switched_on("POWER"), "HSBColor": ",".join(parts), **self._without_white()}
        if name in ("White", "CT"):
            return {**self._switched_on("POWER"), "White": 50, name: int(payload)}
        if name in ("Fade", "Speed", "FanSpeed", "Scheme"):
            return {name: int(payload)}
        if self.config["ty"]:
            name = name.removesuffix("3")  # the state of a Tuya module contains the third dimmer as `Dimmer`
        number = name[-1] if name[-1].isdigit() else ""
        return {**self._switched_on(f"POWER{number}"), name: int(payload)}

    def _switched_on(self, key: str) -> dict[str, Any]:
        is_linked = not self.config["so"]["20"]
        key = key if key in self.state else "POWER" if "POWER" in self.state else "POWER1"
        return {key: self.config["state"][1]} if is_linked else {}

    def _without_white(self) -> dict[str, Any]:
        return {"White": 0} if "White" in self.state else {}

    def _moved(self, name: str, payload: str) -> dict[str, Any]:
        key = f"Shutter{name[-1]}"
        shutter = dict(self.state.get(key, {"Position": 50, "Direction": 0}))
        match name.removeprefix("Shutter")[:-1]:
            case "Open":
                shutter |= {"Direction": 1, "Target": 100}
            case "Close":
                shutter |= {"Direction": -1, "Target": 0}
            case "Stop":
                shutter |= {"Direction": 0}
            case "Position":
                shutter |= {"Position": int(payload), "Target": int(payload)}
            case "Tilt":
                shutter |= {"Tilt": int(payload)}
        return {key: shutter}
