"""Each recording of a real Matter server produces the expected devices, events, and log lines."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from appliance.adapters.matter.clusters import read
from appliance.adapters.matter.commands import request_for
from appliance.adapters.matter.known_nodes import Target
from appliance.adapters.matter.nodes import Endpoint
from appliance.adapters.matter.presses import events_of, press_of
from appliance.adapters.matter.server import ServerConnection
from appliance.clock import Clock
from appliance.errors import LaresError
from appliance.home import events
from appliance.home.command_specs import check_offered
from appliance.home.commands import Command
from tests.adapters.matter.recordings import NAMES, RecordedHome, endpoint, load, steps
from tests.fakes.clock import VirtualClock
from tests.fakes.rows import each_row


def _measured(value: float, unit: str) -> dict[str, Any]:
    return {"value": value, "unit": unit}


THERMOSTAT = {
    "temperature": _measured(20.1, "°C"),
    "target_temperature": _measured(20.0, "°C"),
    "custom.matter.thermostat.heating_setpoint": _measured(20.0, "°C"),
    "custom.matter.thermostat.cooling_setpoint": _measured(26.0, "°C"),
    "hvac_mode": "heat",
}
WHITE = {"color_temperature": _measured(4000, "kelvin"), "color_mode": "color_temp"}
ENERGY = {"value": 1.234567, "unit": "kWh", "period": "total"}
DRAWN = {
    "power_consumption": _measured(42.5, "W"),
    "voltage": _measured(230.1, "V"),
    "current": _measured(0.185, "A"),
    "energy_total": ENERGY,
}

EXPORTED = "custom.matter.electrical_energy_measurement.cumulative_energy_exported"

DEVICES: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "uid-onoff:1": ("Light", "light", "Virtual onoff", {"power": "off"}),
    "uid-dimmer:1": ("Light", "light", "Virtual dimmer", {"power": "off", "brightness": 50}),
    "uid-color:1": ("Light", "light", "Virtual color", {"power": "off", "brightness": 79, **WHITE}),
    "uid-plug:1": ("Switch", "plug", "Virtual plug", {"power": "off", **DRAWN}),
    "uid-sensors:1": ("Sensor", "contact", "Virtual sensors 1", {"contact": "closed", "battery": 87}),
    "uid-sensors:2": ("Sensor", "temperature", "Virtual sensors 2", {"temperature": _measured(21.5, "°C")}),
    "uid-sensors:3": ("Sensor", "humidity", "Virtual sensors 3", {"humidity": _measured(45.5, "%")}),
    "uid-sensors:4": ("Sensor", "occupancy", "Virtual sensors 4", {"occupancy": "unoccupied"}),
    "uid-sensors:5": ("Sensor", "illuminance", "Virtual sensors 5", {"illuminance": 100}),
    "uid-sensors:6": ("Sensor", "pressure", "Virtual sensors 6", {"pressure": _measured(1013.0, "hPa")}),
    "uid-sensors:7": ("Sensor", "water_leak", "Virtual sensors 7", {"water_leak": False}),
    "uid-sensors:8": (
        "Sensor",
        "air_quality",
        "Virtual sensors 8",
        {"co2": _measured(612.0, "ppm"), "air_quality": "excellent"},
    ),
    "uid-sensors:9": (
        "Sensor",
        "smoke",
        "Virtual sensors 9",
        {
            "smoke": False,
            "custom.matter.smoke_co_alarm.co_state": "normal",
            "custom.matter.smoke_co_alarm.co_alarm": False,
            "battery": 60,
        },
    ),
    "uid-cover:1": ("Switch", "cover", "Virtual cover", {"cover_position": 100, "cover_tilt": 100}),
    "uid-lock:1": ("Switch", "lock", "Virtual lock", {"lock": "locked"}),
    "uid-thermostat:1": ("Switch", "climate", "Virtual thermostat", THERMOSTAT),
    "uid-switch:1": ("Sensor", "button", "Virtual switch 1", {}),
    "uid-switch:2": ("Sensor", "button", "Virtual switch 2", {}),
    "uid-fan:1": (
        "Switch",
        "fan",
        "Virtual fan",
        {"power": "off", "fan_mode": "off", "custom.matter.fan_control.percent_setting": 0},
    ),
    "uid-bridge:2": ("Light", "light", "Desk lamp", {"power": "off", "brightness": 39}),
    "uid-bridge:3": ("Sensor", "temperature", "Freezer", {"temperature": _measured(-18.5, "°C")}),
}
"""The initial kind, class, name, and attributes of each device."""


@pytest.fixture
def home() -> RecordedHome:
    return RecordedHome()


def test_eleven_nodes_are_twenty_one_devices(home: RecordedHome) -> None:
    home.play_all("commission")
    seen = {each.id.removeprefix("matter:"): each for each in home.registry.list_devices()}
    assert seen.keys() == DEVICES.keys()
    for id_, (kind, device_class, name, shows) in DEVICES.items():
        device = seen[id_]
        assert (device.kind, device.info.device_class, device.name) == (kind, device_class, name), id_
        assert device.attributes == {**shows, "state": "online"}, id_
        is_bridged = id_.startswith("uid-bridge")
        assert device.info.parent_id == ("matter:uid-bridge:1" if is_bridged else None)
        assert (device.info.manufacturer, device.info.firmware) == ("Acme", "1.2.3")
        assert bool(device.commands) is (kind != "Sensor")
    assert seen["uid-bridge:2"].info.serial == "BR-lamp" and seen["uid-plug:1"].info.serial == "SN-plug"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_in_a_recording_is_dropped_or_unreadable(home: RecordedHome, name: str) -> None:
    home.play_all(name)
    assert not [each for each in home.happened if isinstance(each, events.ObservationDropped)]


COMMANDS: list[tuple[int, str, dict[str, Any]]] = [
    (2, "uid-onoff:1", {"capability": "power", "action": "on"}),
    (4, "uid-onoff:1", {"capability": "power", "action": "toggle"}),
    (6, "uid-dimmer:1", {"capability": "brightness", "action": "set", "value": 50}),
    (7, "uid-dimmer:1", {"capability": "brightness", "action": "set", "value": 100, "transition_secs": 2}),
    (9, "uid-dimmer:1", {"capability": "power", "action": "off"}),
    (15, "uid-color:1", {"capability": "color_temperature", "action": "set", "value": _measured(370, "mireds")}),
    (16, "uid-color:1", {"capability": "color_hs", "action": "set", "value": {"hue": 120, "saturation": 100}}),
    (17, "uid-color:1", {"capability": "color_xy", "action": "set", "value": {"x": 0.3, "y": 0.4}}),
    (
        22,
        "uid-color:1",
        {"capability": "color_temperature", "action": "set", "value": _measured(300, "mireds")},
    ),
    (23, "uid-cover:1", {"capability": "cover_position", "action": "set", "value": 50}),
    (24, "uid-cover:1", {"capability": "cover_position", "action": "close"}),
    (25, "uid-cover:1", {"capability": "cover_position", "action": "stop"}),
    (26, "uid-cover:1", {"capability": "cover_position", "action": "open"}),
    (27, "uid-cover:1", {"capability": "cover_tilt", "action": "set", "value": 25}),
    (29, "uid-lock:1", {"capability": "lock", "action": "unlock"}),
    (30, "uid-lock:1", {"capability": "lock", "action": "lock"}),
    (31, "uid-lock:1", {"capability": "lock", "action": "unlock", "code": "1234"}),
    (32, "uid-thermostat:1", {"capability": "target_temperature", "action": "set", "value": _measured(21.5, "°C")}),
    (
        33,
        "uid-thermostat:1",
        {
            "capability": "custom.matter.thermostat.cooling_setpoint",
            "action": "set",
            "value": _measured(24.5, "°C"),
        },
    ),
    (34, "uid-thermostat:1", {"capability": "hvac_mode", "action": "set", "value": "cool"}),
    (35, "uid-thermostat:1", {"capability": "hvac_mode", "action": "set", "value": "heat_cool"}),
    (37, "uid-thermostat:1", {"capability": "hvac_mode", "action": "set", "value": "heat"}),
    (
        41,
        "uid-fan:1",
        {"capability": "custom.matter.fan_control.percent_setting", "action": "set", "value": 60},
    ),
    (42, "uid-fan:1", {"capability": "fan_mode", "action": "set", "value": "high"}),
    (44, "uid-fan:1", {"capability": "fan_mode", "action": "set", "value": "off"}),
    (45, "uid-plug:1", {"capability": "power", "action": "on"}),
    (46, "uid-plug:1", {"capability": "power", "action": "toggle"}),
]
"""The numbers of recorded requests, and the equivalent commands."""

OPTIONS = ("optionsMask", "optionsOverride", "transitionTime")
REFUSED = {31}
"""The device refused this command, so the command's result is never reported."""


def test_commands_are_the_recorded_requests_and_end_with_the_reports(home: RecordedHome) -> None:
    lines, commands, tried = load("commands"), {number: rest for number, *rest in COMMANDS}, 0
    for at, line in enumerate(lines):
        message = line["msg"]
        if line["dir"] == "in" and "event" not in message and "message_id" not in message:
            continue
        if line["dir"] == "in":
            home.play([message])
        number = int(message["message_id"]) if line["dir"] == "out" else 0
        if number not in commands:
            continue
        tried += 1
        device_id, raw = commands[number]
        place = home.live.nodes.targets.get(f"matter:{device_id}")
        assert place is not None
        command = Command.parse(raw)
        device = home.registry.get_device(f"matter:{device_id}")
        check_offered(device.id, device.commands or (), command)
        request = request_for(place.endpoint, command)
        assert _plain({"node_id": place.node.id, **request.arguments}) == _plain(message["args"]), number
        assert request.command == message["command"], number
        done_before = request.is_done(place.endpoint)
        for later in lines[at + 1 :]:
            if later["dir"] == "out":
                break
            if "event" in later["msg"]:
                RecordedHome.play(home, [later["msg"]])
        assert request.is_done(place.endpoint) is (number not in REFUSED), number
        assert not done_before or command.action == "stop", number
    assert tried == len(COMMANDS)


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """Remove the options from a request, because the recorded requests have none."""
    payload = {key: each for key, each in arguments.get("payload", {}).items() if key not in OPTIONS}
    return {**arguments, "payload": payload}


def test_events_in_the_home_are_published(home: RecordedHome) -> None:
    home.play_all("events")
    assert home.pressed() == [
        (device, event, data)
        for device in ("uid-switch:1", "uid-switch:2")
        for event, data in (
            ("single", {"position": 1, "count": 1}),
            ("double", {"position": 1, "count": 2}),
            ("long", {"position": 1}),
            ("release", {"position": 1}),
        )
    ]
    seen = {
        ("uid-sensors:1", "contact"): ["closed", "open"],
        ("uid-sensors:1", "battery"): [87, 10],
        ("uid-sensors:2", "temperature"): [_measured(21.5, "°C"), _measured(22.37, "°C"), None],
        ("uid-sensors:3", "humidity"): [_measured(45.5, "%"), _measured(50.12, "%")],
        ("uid-sensors:4", "occupancy"): ["unoccupied", "occupied"],
        ("uid-sensors:5", "illuminance"): [100, 1024],
        ("uid-sensors:6", "pressure"): [_measured(1013.0, "hPa"), _measured(998.0, "hPa")],
        ("uid-sensors:7", "water_leak"): [False, True],
        ("uid-sensors:8", "air_quality"): ["excellent", "poor"],
        ("uid-sensors:8", "co2"): [_measured(612.0, "ppm"), _measured(1423.5, "ppm")],
        ("uid-sensors:9", "smoke"): [False, True],
        ("uid-plug:1", "power_consumption"): [_measured(42.5, "W"), _measured(61.25, "W")],
        ("uid-plug:1", "energy_total"): [ENERGY, {**ENERGY, "value": 1.24}],
        ("uid-thermostat:1", "temperature"): [_measured(20.1, "°C"), _measured(19.85, "°C")],
        ("uid-lock:1", "lock"): ["locked", "unlocked", "jammed", "locked"],
        ("uid-bridge:3", "temperature"): [_measured(-18.5, "°C"), _measured(-17.2, "°C")],
        ("uid-bridge:3", "state"): ["online", "unavailable", "online"],
        ("uid-bridge:4", "power"): ["off"],
    }
    assert {key: home.values_seen(*key) for key in seen} == seen
    assert [each.device_id for each in home.happened if isinstance(each, events.DeviceRemoved)] == [
        "matter:uid-bridge:4"
    ]


@each_row(
    ("features", "may", "happens"),
    [
        (1, ["hold", "release"], [(0, {"newPosition": 1}, "hold"), (0, {"newPosition": 0}, "release")]),
        (2, ["single"], [(1, {"newPosition": 1}, "single"), (3, {"previousPosition": 1}, None)]),
        (6, ["single"], [(1, {"newPosition": 1}, None), (3, {"previousPosition": 1}, "single")]),
        (14, ["single", "long", "release"], [(3, {}, "single"), (2, {}, "long"), (4, {}, "release"), (6, {}, None)]),
        (
            30,
            ["single", "double", "triple", "long", "release"],
            [
                (3, {}, None),
                (5, {"currentNumberOfPressesCounted": 2}, None),
                (6, {"totalNumberOfPressesCounted": 0}, None),
                (6, {"totalNumberOfPressesCounted": 3}, "triple"),
                (6, {"totalNumberOfPressesCounted": 5}, "triple"),
            ],
        ),
    ],
)
def test_a_switch_reports_each_press_once_according_to_its_features(
    features: int, may: list[str], happens: list[tuple[int, dict[str, Any], str | None]]
) -> None:
    switch = endpoint(9, 1)
    switch.clusters[59][65532] = features
    assert events_of(switch) == may
    for event_id, data, name in happens:
        press = press_of(switch, event_id, data)
        assert (None if press is None else press[0]) == name, (event_id, data)


def test_carbon_monoxide_is_an_alarm_like_smoke(home: RecordedHome) -> None:
    home.play(_first_piece())
    detector = "matter:uid-sensors:9"
    assert home.registry.get_device(detector).is_alarm("custom.matter.smoke_co_alarm.co_alarm")
    home.play([{"event": "attribute_updated", "data": [5, "9/92/2", 2]}])
    assert home.shows("uid-sensors:9")["custom.matter.smoke_co_alarm.co_alarm"] is True


def test_a_press_that_is_reported_twice_happened_once(home: RecordedHome) -> None:
    home.play_all("events")
    pressed = home.pressed()
    for piece in steps("events"):
        home.play([each for each in piece if each.get("event") == "node_event"])
    assert home.pressed() == pressed


def test_energy_in_an_event_is_shown_because_some_servers_omit_the_attribute(home: RecordedHome) -> None:
    home.play_all("events")
    event = {"node_id": 4, "endpoint_id": 1, "cluster_id": 145, "event_id": 0, "event_number": 524350}
    home.play([{"event": "node_event", "data": {**event, "data": {"energyImported": {"energy": 10_871_830_000}}}}])
    assert home.shows("uid-plug:1")["energy_total"] == {**ENERGY, "value": 10871.83}
    for data in (None, {}, {"energyImported": None}, {"energyImported": {"energy": "x"}}):
        home.play([{"event": "node_event", "data": {**event, "data": data}}])
    assert home.shows("uid-plug:1")["energy_total"] == {**ENERGY, "value": 10871.83}


def test_names_come_from_the_owner_then_from_the_vendor(home: RecordedHome) -> None:
    home.play_all("events")
    names = {each.id.removeprefix("matter:"): each.name for each in home.registry.list_devices()}
    different = {id_: name for id_, name in names.items() if name != DEVICES[id_][2]}
    assert different == {
        "uid-onoff:1": "Kitchen light",
        "uid-bridge:2": "Reading lamp",
        "uid-bridge:3": "Desk lamp 2",
        "uid-switch:1": "hall",
    }
    assert home.registry.get_device("matter:uid-switch:1").info.area == "hall"


def test_a_bridged_device_exists_once_it_is_complete(home: RecordedHome) -> None:
    for piece in steps("events"):
        is_there = "matter:uid-bridge:4" in {each.id for each in home.registry.list_devices()}
        home.play([each for each in piece if each.get("event") == "attribute_updated"])
        assert ("matter:uid-bridge:4" in {each.id for each in home.registry.list_devices()}) is is_there
        home.play([each for each in piece if each.get("event") != "attribute_updated"])


@pytest.mark.parametrize("name", ["outage", "restart", "missed"])
def test_outages_and_restarts_change_no_value_and_fire_no_trigger(home: RecordedHome, name: str) -> None:
    """Some nodes are not reachable yet, so the home's values are newer than the values in the server's list."""
    home.play_all("commands")
    if name == "restart":
        home.play(next(steps("restart")))
    before = {each.id: dict(each.attributes) for each in home.registry.list_devices()}
    home.happened.clear()
    for piece in steps(name):
        reached = {
            each["data"]["node_id"]
            for each in piece
            if each.get("event") == "node_updated" and each["data"]["available"]
        }
        reported = {each["data"][0] for each in piece if each.get("event") == "attribute_updated"}
        listed = {
            node["node_id"]
            for each in piece
            for node in (each["result"] if isinstance(each.get("result"), list) else ())
            if node.get("available")
        }
        home.play(piece)
        for device in home.registry.list_devices():
            node = device.metadata.vendor_specific["node_id"]
            if node not in reached | reported | listed:
                assert {**device.attributes, "state": ""} == {**before[device.id], "state": ""}, (name, device.id)
            before[device.id] = dict(device.attributes)
    assert home.pressed() == []
    removed = [each for each in home.happened if isinstance(each, events.DeviceRemoved)]
    assert not removed and len(home.registry.list_devices()) == len(DEVICES)


def test_a_returning_server_changes_only_reachability(home: RecordedHome) -> None:
    home.play(next(steps("restart")))
    home.happened.clear()
    home.play_all("restart")
    assert home.changed() == {"state", "temperature"}
    # The temperature was lowered while the server was away. All later reports contain the new value.
    assert home.values_seen("uid-sensors:2", "temperature")[-1] == _measured(11.11, "°C")
    assert set(home.values_seen("uid-plug:1", "state")) == {"online", "unavailable"}


def test_a_stopped_device_is_unavailable_until_it_returns(home: RecordedHome) -> None:
    home.play_all("outage")
    states = ["online", "unavailable", "online", "unavailable", "online"]
    assert home.values_seen("uid-plug:1", "state") == states
    assert home.values_seen("uid-plug:1", "power") == ["off", "on"]
    assert home.values_seen("uid-lock:1", "state") == ["online"]


def test_a_second_node_of_the_same_unique_id_has_an_id_of_its_own(home: RecordedHome) -> None:
    home.play_all("test-node")
    added = [
        each.device.id
        for each in home.happened
        if isinstance(each, events.DeviceStateChanged) and each.previous is None and "dbba1" in each.device.id
    ]
    assert added == ["matter:dbba1:1"]
    assert [each.device_id for each in home.happened if isinstance(each, events.DeviceRemoved)] == added


SENTENCES = {
    ("commands", "13"): "the value is out of range (ConstraintError, status 0x87)",
    ("commands", "28"): "the request needs a timed interaction (NeedsTimedInteraction, status 0xc6)",
    ("commands", "31"): "the request failed (Failure, status 0x01)",
    ("commands", "38"): "the value is out of range (status 0x87)",
    ("commands", "39"): "the attribute cannot be written (status 0x88)",
    ("commission", "12"): "the device could not be paired (error 1: Bluetooth commissioning is not available.)",
    ("commission", "13"): "the device could not be paired (error 1: Commission with code failed for node 12.)",
    (
        "errors",
        "3",
    ): "the server does not know the device (error 5: Node 99 does not exist or is not yet interviewed)",
    ("errors", "4"): "the server did not understand the request (error 8)",
    ("errors", "5"): "the server did not understand the request (error 8)",
    ("errors", "6"): "the server does not know the request (error 9: Invalid command: nonsense)",
    ("errors", "7"): "the server does not reach the device (error 3)",
    ("errors", "8"): "the server refused (error 0: type object 'Commands' has no attribute 'Onn')",
    ("errors", "9"): "the server did not understand the request (error 8)",
    ("errors", "10"): "the device has no such endpoint (UnsupportedEndpoint, status 0x7f)",
    ("errors", "11"): "the device has no such cluster (UnsupportedCluster, status 0xc3)",
    ("errors", "12"): "the server refused (error 0: 99999)",
    ("errors", "14"): "the server refused (error 0: Value bright of type <class 'str'> is invalid for "
    "MoveToLevel.level, expected value of type <class 'chip.tlv.uint'>)",
    ("errors", "15"): "the server refused (error 0: Value 50.0 of type <class 'float'> is invalid for "
    "MoveToLevel.level, expected value of type <class 'chip.tlv.uint'>)",
    ("errors", "19"): "the device has no such cluster (UnsupportedCluster, status 0xc3)",
    ("errors", "21"): "the value is out of range (status 0x87)",
    ("errors", "22"): "the server refused (error 0: Value 5 of type <class 'int'> is invalid for 0/40/5, "
    "expected value of type <class 'str'>)",
    ("errors", "1"): "the device could not be paired (error 1: Commission with code failed for node 13.)",
    ("outage", "2"): "the server does not reach the device (error 3)",
    ("outage", "3"): "the device does not answer (CHIP Error 0x00000032: Timeout)",
    ("outage", "4"): "the device does not answer (CHIP Error 0x00000032: Timeout)",
    ("test-node", "4"): "the server does not reach the device (error 3)",
    ("test-node", "6"): "the server does not know the device (error 5: Node 900000 does not exist or has not been "
    "interviewed.)",
}
"""The error message of each refusal, by recording and number of the request."""


async def test_every_refusal_has_its_status_and_meaning() -> None:
    found: dict[tuple[str, str], str] = {}
    for name in NAMES:
        for line in load(name):
            message = line["msg"]
            if line["dir"] != "in" or message.get("message_id") is None:
                continue
            answered = _Answered(message)
            try:
                await answered.connection.ask("any", {}, 1)
            except LaresError as error:
                found[name, message["message_id"]] = str(error)
    assert found == SENTENCES


class _Answered:
    """A connection whose server gives the same answer to each request."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self._answer = answer
        self.connection = ServerConnection(self, Clock(), "ws://server", list)  # type: ignore[arg-type]

    async def send(self, message: dict[str, Any]) -> None:
        self.connection.receive({**self._answer, "message_id": message["message_id"]}, lambda *_: None)


@each_row(
    ("node", "raw"),
    [
        (3, {"capability": "color_hs", "action": "set", "value": {"hue": 10, "saturation": 50}}),
        (3, {"capability": "color_xy", "action": "set", "value": {"x": 0.5, "y": 0.3}}),
        (3, {"capability": "color_temperature", "action": "set", "value": _measured(3000, "kelvin")}),
    ],
)
def test_a_light_that_is_off_accepts_a_colour(node: int, raw: dict[str, Any]) -> None:
    """If these options are missing, the light reports success, but ignores the command."""
    payload = request_for(endpoint(node, 1), Command.parse(raw)).arguments["payload"]
    assert (payload["optionsMask"], payload["optionsOverride"]) == (1, 1)


def test_every_percentage_is_shown_as_it_was_set() -> None:
    lamp = endpoint(2, 1)
    for percent in range(1, 101):
        command = Command(capability="brightness", action="set", value=percent)
        level = request_for(lamp, command).arguments["payload"]["level"]
        assert max(1, round(level / 2.54)) == percent


JUNK: tuple[Any, ...] = (True, -1, 10**30, 1.5, "", [], [7], [{}], {}, {"0": []})


@pytest.mark.parametrize("junk", [None, "x", *(pytest.param(each, marks=pytest.mark.slow) for each in JUNK)], ids=str)
def test_an_invalid_device_does_not_hide_the_others(home: RecordedHome, junk: Any) -> None:
    nodes = next(
        line["msg"]["result"] for line in load("commands") if line["dir"] == "in" and "result" in line["msg"]
    )
    for odd in nodes:
        spoiled = {**odd, "attributes": dict.fromkeys(odd["attributes"], junk)}
        list(home.live.replacing_all([spoiled if each is odd else each for each in nodes]))
        assert len(home.registry.list_devices()) >= len(DEVICES) - 9
    for odd in nodes:
        for path in odd["attributes"]:
            home.live.handle("attribute_updated", [odd["node_id"], path, junk])
    list(home.live.flushing())
    for event in ("node_event", "endpoint_added", "endpoint_removed", "node_removed", "attribute_updated", "other"):
        home.live.handle(event, junk)
        home.live.handle(event, {"node_id": 9, "endpoint_id": 1, "cluster_id": 59, "event_id": 6, "data": junk})


def test_changes_and_presses_in_one_report_are_shown_in_order(home: RecordedHome) -> None:
    home.play(_first_piece())
    path = [5, "1/69/0"]
    before = len(home.happened)
    for message in ([*path, False], [*path, True], [*path, False]):
        home.live.handle("attribute_updated", message)
    list(home.live.flushing())
    shown = [
        each.device.attributes["contact"]
        for each in home.happened[before:]
        if isinstance(each, events.DeviceStateChanged)
    ]
    assert shown == ["open", "closed", "open"]


async def test_changes_without_end_do_not_delay_the_result_of_a_command(home: RecordedHome) -> None:
    home.play(_first_piece())
    device_id = "matter:uid-sensors:1"

    def is_open(_: Target) -> bool:
        return bool(home.shows("uid-sensors:1")["contact"] == "open")

    waiting = asyncio.ensure_future(home.live.wait_until(device_id, is_open, VirtualClock(), 5.0))
    await asyncio.sleep(0)
    home.live.handle("attribute_updated", [5, "1/69/0", False])
    for level, _ in zip(range(100), home.live.flushing(), strict=False):
        home.live.handle("attribute_updated", [2, "1/8/0", level])
        await asyncio.sleep(0)
        if waiting.done():
            break
    assert (await waiting, level) == (True, 0)


def test_a_null_is_a_gap_of_only_its_attribute(home: RecordedHome) -> None:
    home.play(_first_piece())
    shown = home.shows("uid-sensors:2")
    home.play([{"event": "attribute_updated", "data": [5, "2/1026/0", None]}])
    assert home.shows("uid-sensors:2") == {key: each for key, each in shown.items() if key != "temperature"}
    assert home.registry.get_device("matter:uid-sensors:2").announced == ("temperature",)
    home.play([{"event": "attribute_updated", "data": [5, "2/1026/0", 2150]}])
    assert home.shows("uid-sensors:2")["temperature"] == {"value": 21.5, "unit": "°C"}


def _first_piece() -> list[dict[str, Any]]:
    return next(steps("commands"))


@each_row(
    ("cluster", "value", "shown"),
    [
        (1026, -32768, {}),
        (1026, -100, {"temperature": {"value": -1.0, "unit": "°C"}}),
        (1029, 65535, {}),
        (1027, -32768, {}),
        (513, -32768, {}),
        (1024, 65535, {}),
        (8, 255, {}),
    ],
)
def test_the_null_of_older_firmware_is_not_a_measurement(cluster: int, value: int, shown: dict[str, Any]) -> None:
    sensor = Endpoint(1)
    sensor.clusters[cluster] = {0: value}
    assert read(sensor, None) == (shown, {})


@each_row(
    ("cluster", "fields", "shown"),
    [
        (514, {0: 5, 2: 255}, {"power": "on", "fan_mode": "auto"}),
        (514, {0: 0, 2: 255}, {"power": "off", "fan_mode": "off"}),
        (768, {7: 0, 8: 2}, {"color_mode": "color_temp"}),
        (513, {18: -32768, 28: 4, 65532: 1}, {"hvac_mode": "heat"}),
        (144, {4: None, 11: 230_100, 12: 500}, {"voltage": _measured(230.1, "V"), "current": _measured(0.5, "A")}),
        (144, {4: 229_000, 11: 230_100}, {"voltage": _measured(229.0, "V")}),
        (145, {2: {"0": 5_000_000}}, {EXPORTED: _measured(5.0, "kWh")}),
    ],
)
def test_fields_of_some_devices_are_read(cluster: int, fields: dict[int, Any], shown: dict[str, Any]) -> None:
    device = Endpoint(1)
    device.clusters[cluster] = fields
    assert read(device, None) == (shown, {})


@each_row(
    ("cluster", "fields", "key"),
    [
        (1026, {0: -28_000}, "temperature"),
        (1029, {0: 12_000}, "humidity"),
        (513, {0: -28_000}, "temperature"),
        (768, {7: 65_535, 8: 2}, "color_temperature"),
        (1037, {0: -1.0, 8: 0}, "co2"),
        (1037, {0: float("nan"), 8: 0}, "co2"),
        (1026, {0: 65_535}, "temperature"),
        (92, {1: 3}, "smoke"),
        (92, {1: 255}, "smoke"),
        (513, {41: 128}, "hvac_state"),
        (514, {0: 7}, "power"),
        (1030, {0: 255}, "occupancy"),
    ],
)
def test_impossible_numbers_are_unknown_and_reported(cluster: int, fields: dict[int, Any], key: str) -> None:
    device = Endpoint(1)
    device.clusters[cluster] = fields
    values, wrong = read(device, None)
    assert (values.get(key), list(wrong)) == (None, [key])


def test_missing_nodes_and_endpoints_are_removed_in_steps(home: RecordedHome) -> None:
    nodes = next(
        line["msg"]["result"] for line in load("commands") if line["dir"] == "in" and "result" in line["msg"]
    )
    list(home.live.replacing_all(nodes))
    counts = [len(home.registry.list_devices())]
    home.live.handle("node_removed", nodes[0]["node_id"])
    for remaining in (nodes[1:], nodes[-1:]):
        for _ in home.live.replacing_all(remaining):
            counts.append(len(home.registry.list_devices()))
            assert counts[-1] >= counts[-2] - 1
    assert {each.id for each in home.registry.list_devices()} == home.live.nodes.targets.keys()
    assert 0 < counts[-1] < counts[0] - 1
