"""Zigbee2MQTT's own code announces all models that it supports. The test builds and commands each model."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, field

from appliance.adapters.mqtt.device import MqttDevice
from appliance.adapters.mqtt.messages import Message, Outgoing
from appliance.adapters.mqtt.pending_command import PendingCommand
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.errors import LaresError
from appliance.home.command_specs import CommandSpec, check_offered
from appliance.home.commands import Command
from tests.adapters.mqtt.captures import Sent
from tests.adapters.mqtt.table import NOW, new_catalog, take
from tests.dashboard.npm import installed
from tests.fakes.programs import need

SCRIPT = Path(__file__).with_name("zigbee2mqtt.js")
PACKAGES = ("zigbee2mqtt@2.14.1",)
MIN_SHARE = 0.97
"""Minimum share of fully supported models. A model is fully supported if all its values are published and all its
commands have results."""


_VALUES: Mapping[str, tuple[Any, ...]] = {
    "color_xy": ({"x": 0.3, "y": 0.3},),
    "color_hs": ({"hue": 30, "saturation": 100},),
    "color_rgb": ({"r": 1, "g": 2, "b": 3},),
    "color_hex": ("#010203",),
    "brightness": (0, 1, 50, 100),
    "cover_position": (0, 30, 100),
    "cover_tilt": (0, 30, 100),
}


class Verdict(Struct):
    """The result for one model: the tested `commands`, failures of other commands, and omitted entities."""

    model: str
    entities: int = 0
    commands: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The column of the table."""
        if not self.entities:
            return "nothing announced"
        if not self.failures:
            return "fully" if self.commands else "shown"
        return "in part" if self.commands > len(self.failures) else "not"


def judge(model: str, announced: list[tuple[str, str]]) -> Verdict:
    """Announce one model, and send each of its commands with each possible value."""
    verdict, catalog = Verdict(model, len(announced)), new_catalog(includes_config_entities=True)
    take(catalog, tuple(Sent(topic, payload.encode(), True) for topic, payload in announced))
    verdict.failures += [f"{each.attribute}: {each.reason}" for each in catalog.refusals.by_key.values()]
    there = {entity.announcement.source for each in catalog.devices.values() for entity in each.entities}
    for topic, payload in announced:
        config = json.loads(payload)
        takes = any(key.endswith("command_topic") and value for key, value in config.items())
        if topic not in there and config.get("automation_type") != "trigger" and not _is_legacy_action(topic):
            verdict.failures.append(f"{topic.split('/')[1]} is left out")
        elif takes and not _is_offered(catalog.devices.values(), topic):
            verdict.failures.append(f"{topic.split('/')[1]} {topic.split('/')[-2]} takes no command")
    state: dict[str, Any] = {}
    for device in list(catalog.devices.values()):
        for spec in device.specs:
            for command in _commands(spec):
                verdict.commands += 1
                try:
                    _command(catalog, device, spec, command, state)
                except (LaresError, AssertionError, ValueError) as error:
                    verdict.failures.append(f"{spec.capability} {command.action} {command.value}: {error}")
    return verdict


def _is_legacy_action(topic: str) -> bool:
    return topic.endswith("/action/config")


def _is_offered(devices: Any, topic: str) -> bool:
    return any(entity.announcement.source == topic for each in devices for entity in each.handlers.values())


def _commands(spec: CommandSpec) -> Iterator[Command]:
    for action in spec.actions:
        for value in _values(spec) if action == "set" else (None,):
            raw = {"capability": spec.capability, "action": action}
            yield Command.parse(raw if value is None else {**raw, "value": value})


def _values(spec: CommandSpec) -> tuple[Any, ...]:
    if spec.values:
        return spec.values
    if spec.capability == "color_temperature":
        return tuple({"value": each, "unit": "kelvin"} for each in (spec.min, spec.max))
    if spec.capability in _VALUES:
        return _VALUES[spec.capability]
    if spec.type == "boolean":
        return True, False
    if spec.min is not None and spec.max is not None:
        middle = spec.min + (spec.step or 1) * ((spec.max - spec.min) // (2 * (spec.step or 1)))
        numbers = dict.fromkeys((spec.min, middle, spec.max))
        return tuple({"value": each, "unit": spec.unit} if spec.type is None else each for each in numbers)
    return ("text",) if spec.type == "string" else ({"value": 20, "unit": spec.unit},) if spec.unit else (20,)


def _command(catalog: Any, device: MqttDevice, spec: CommandSpec, command: Command, known: dict[str, Any]) -> None:
    """Send one command, simulate the device's answer, and check that the command's result is published."""
    check_offered(device.id, device.specs, command)
    entity = device.handlers[spec.capability]
    intent = entity.write(command, NOW)
    assert intent.messages, "nothing is published"
    pending = PendingCommand(intent, entity.attributes, 0.0, None)
    for message in intent.messages:
        for topic, state in answers(message, known):
            sentence = Message(topic, json.dumps(state).encode(), NOW)
            for filter_, _, reader in catalog.router.find_routes(topic):
                for change in reader.changes(filter_, sentence):
                    if not isinstance(change, dict):
                        continue
                    reader.apply(change, reader.changed_by(change))
                    if reader is entity:
                        pending.check(change, entity)
    is_done = all(map(entity.is_assumed, intent.shows)) or pending.ended.is_set()
    assert is_done, _shown(entity, intent.shows)


def _shown(entity: Entity, expected: Mapping[str, Any]) -> str:
    return f"shows {[entity.attributes.get(key) for key in expected]}, not {list(expected.values())}"


def answers(message: Outgoing, known: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the states of a device that executes a message at `<base>/<name>[/endpoint]/set[/property]`.

    If the topic contains the device's own name, the endpoint follows each property. If the topic contains an
    endpoint's name, no endpoint follows the properties. A property whose name contains the endpoint has both forms,
    because models differ.
    """
    before, _, name = message.topic.partition("/set")
    base, device, *endpoints = before.split("/")
    value: Any = message.payload
    with suppress(ValueError):
        value = value if name == "/fan_mode" or value == "null" else json.loads(value)
    if name:
        value = {name.removeprefix("/"): value}
    elif not isinstance(value, dict):
        value = {"state": value}
    if isinstance(color := value.get("color"), dict):
        value["color_mode"] = "xy" if "x" in color else "hs"
    if "color_temp" in value:
        value["color_mode"] = "color_temp"
    if value.get("state") in ("OPEN", "CLOSE"):
        value["position"] = 100 if value["state"] == "OPEN" else 0
    for endpoint in endpoints:
        plain = {key.removesuffix(f"_{endpoint}"): each for key, each in value.items()}
        yield f"{base}/{device}/{endpoint}", plain
        value = {f"{key}_{endpoint}": each for key, each in plain.items()}
        value |= {key: each for key, each in plain.items() if key == endpoint}
    known |= value
    yield f"{base}/{device}", known


def announced(folder: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each model, and the topics and payloads of its configurations."""
    environment = {**os.environ, "ZIGBEE2MQTT_DATA": str(folder)}
    lines, errors = folder / "announced", folder / "errors"
    with lines.open("wb") as out, errors.open("wb") as err:
        command = [need("node"), str(SCRIPT), str(installed(*PACKAGES))]
        subprocess.run(command, stdout=out, stderr=err, env=environment, timeout=500, check=True)
    with lines.open() as found:
        for line in found:
            sentence = json.loads(line)
            assert "error" not in sentence, sentence
            yield sentence["model"], [(topic, payload) for topic, payload in sentence["sent"]]


@pytest.mark.slow
@pytest.mark.release
def test_nearly_every_model_of_zigbee2mqtt_is_fully_supported(tmp_path: Path) -> None:
    verdicts = [judge(model, configs) for model, configs in announced(tmp_path)]
    table = Counter(each.kind for each in verdicts)
    wrong = [(each.model, each.failures[:3]) for each in verdicts if each.failures]
    print(dict(table), sum(each.commands for each in verdicts), *wrong, sep="\n")
    assert len(verdicts) > 4_000
    assert table["fully"] + table["shown"] >= MIN_SHARE * len(verdicts), wrong
