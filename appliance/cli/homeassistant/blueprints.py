"""Adds the content of blueprints to the automations and scripts that use them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from appliance.cli.homeassistant.folder import ConfigFolder
from appliance.cli.homeassistant.includes import expand_includes
from appliance.cli.homeassistant.values import as_mapping
from appliance.cli.homeassistant.yaml_parser import Tagged


def with_blueprint(folder: ConfigFolder, definition: Any, section: str) -> Any:
    """Add the blueprint's parts to an automation or script. If the blueprint's file is missing, return the definition
    unchanged."""
    use = as_mapping(as_mapping(definition).get("use_blueprint"))
    file = f"blueprints/{section}/{use.get('path')}"
    if not use or not folder.contains(file):
        return definition
    blueprint = dict(as_mapping(folder.read_yaml(file)))
    if not blueprint:
        return definition
    inputs = {
        **dict(_defaults(as_mapping(blueprint.pop("blueprint", None)).get("input"))),
        **as_mapping(use.get("input")),
    }
    own = {key: each for key, each in definition.items() if key != "use_blueprint"}
    return {**_with_inputs(folder, file, blueprint, inputs), **own}


def _defaults(inputs: Any) -> Iterator[tuple[str, Any]]:
    """Yield the default of each blueprint input, including inputs in sections."""
    for name, row in as_mapping(inputs).items():
        yield from _defaults(as_mapping(row).get("input"))
        if "default" in as_mapping(row):
            yield str(name), row["default"]


def _with_inputs(folder: ConfigFolder, file: str, value: Any, inputs: Mapping[str, Any]) -> Any:
    if isinstance(value, Tagged) and value.tag == "!input":
        return expand_includes(folder, file, inputs.get(str(value.value), value))
    folder.count(file, value)
    if isinstance(value, Mapping):
        return {key: _with_inputs(folder, file, each, inputs) for key, each in value.items()}
    return [_with_inputs(folder, file, each, inputs) for each in value] if isinstance(value, list) else value
