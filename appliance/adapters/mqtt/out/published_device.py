"""A device of this hub, and the templates and commands in its announcement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.home.command_specs import CommandSpec
from appliance.home.model import Device

Fields = dict[str, Any]


class PublishedDevice:
    """`keys` contains the device's attributes and capabilities except `state`."""

    def __init__(self, device: Device, set_topic: str, state_topic: str) -> None:
        self.attributes = device.attributes
        self.specs: Mapping[str, CommandSpec] = {spec.capability: spec for spec in device.commands or ()}
        self.keys = {*device.attributes, *self.specs} - {"state"}
        self.set_topic = set_topic
        self.state_topic = state_topic

    def settable(self, key: str) -> Mapping[str, Any]:
        """Return the schema of the values that can be set. Return an empty schema for a read-only attribute."""
        spec = self.specs.get(key)
        return spec.schema() if spec is not None and "set" in spec.actions else {}

    def sends(self, name: str, key: str, value: str) -> Fields:
        """Return the fields for setting an attribute through `<name>_topic`. `value` is JSON, or a template that
        renders JSON."""
        return {f"{name}_topic": self.set_topic, f"{name}_template": command_text(key, "set", value)}

    def show_and_set(
        self, name: str, key: str, value: str, shown: str = "", template: str = "value_template"
    ) -> Fields:
        """Return the fields for reading one property, and for setting it if it accepts commands."""
        fields = {f"{name}_state_topic": self.state_topic, f"{name}_{template}": shown or shown_text(key)}
        return fields | self.sends(f"{name}_command", key, value) if key in self.specs else fields

    def switched(self, key: str, payloads: Mapping[str, str], otherwise: str = "") -> Fields:
        """Return the fields of a switch with the same texts for commands and states.

        `payloads` maps each value, written as a template literal, to its payload: first the value for on, then the
        value for off.
        """
        shown, (on, off) = expression(key), payloads.values()
        is_on, is_off = (f"{shown} == {value}" for value in payloads)
        state = f"{{% if {is_on} %}}{on}{{% elif {is_off} %}}{off}{{% else %}}{otherwise}{{% endif %}}"
        return {"payload_on": on, "payload_off": off, "command_topic": self.set_topic, "value_template": state}

    def power(self) -> Fields:
        on, off = command_text("power", "on"), command_text("power", "off")
        return self.switched("power", {"'on'": on, "'off'": off}, "None")


def command_text(capability: str, action: str, value: str | None = None) -> str:
    """Return a command as JSON text. `value` is JSON, or a template that renders JSON."""
    head = f'{{"capability":"{capability}","action":"{action}"'
    return head + "}" if value is None else f'{head},"value":{value}}}'


def expression(key: str) -> str:
    return f"value_json.attributes['{key}']"


def if_defined(key: str, text: str) -> str:
    """Return a template that renders the text only if the attribute has a value."""
    return f"{{% if {expression(key)} is defined %}}{text}{{% endif %}}"


def shown_text(key: str, path: str = "") -> str:
    """Return a template that renders the attribute, or an empty string if the attribute has no value."""
    return if_defined(key, f"{{{{ {expression(key)}{path} }}}}")
