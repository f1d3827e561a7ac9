"""Zigbee2MQTT's own code announces every model that it knows; each is taken in and commanded."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.mqtt.zigbee2mqtt import judge
from tests.dashboard.npm import installed
from tests.fakes.programs import need

SCRIPT = Path(__file__).with_name("zigbee2mqtt.js")
PACKAGES = ("zigbee2mqtt@2.14.1",)
MIN_SHARE = 0.97
"""Share of the models that are understood in full: everything is shown, and every command has its result."""


def announced(folder: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each model, and the topics and payloads of its configurations."""
    environment = {**os.environ, "ZIGBEE2MQTT_DATA": str(folder)}
    lines, errors = folder / "announced", folder / "errors"
    with lines.open("wb") as out, errors.open("wb") as err:
        command = [need("node"), str(SCRIPT), str(installed(*PACKAGES))]
        subprocess.run(command, stdout=out, stderr=err, env=environment, timeout=500, check=True)
    with lines.open() as found:
        for line in found:
            said = json.loads(line)
            assert "error" not in said, said
            yield said["model"], [(topic, payload) for topic, payload in said["sent"]]


@pytest.mark.slow
def test_nearly_every_model_that_zigbee2mqtt_knows_is_understood_in_full(tmp_path: Path) -> None:
    verdicts = [judge(model, configs) for model, configs in announced(tmp_path)]
    table = Counter(each.kind for each in verdicts)
    wrong = [(each.model, each.failures[:3]) for each in verdicts if each.failures]
    print(dict(table), sum(each.commands for each in verdicts), *wrong, sep="\n")
    assert len(verdicts) > 4_000
    assert table["fully"] + table["shown"] >= MIN_SHARE * len(verdicts), wrong
