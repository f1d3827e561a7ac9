"""The kind `virtual`: configured devices and catalog entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from appliance.adapters.kind import AdapterKind
from appliance.errors import Invalid
from appliance.home.capabilities import CAPABILITIES, KNOWN_ATTRIBUTES, is_custom
from appliance.home.command_specs import CommandSpec
from appliance.home.model import DeviceKind
from appliance.home.observations import Dropped, check_attributes
from appliance.home.texts import MAX_NAME_CHARS, strip_text
from appliance.home.units import measure_fault
from appliance.home.values import KELVIN_RANGE, Value
from appliance.tables.checks import format_value, is_number, matching, nearest, one_of, string, suggest
from appliance.tables.fields import Settings, key, rows

MAX_LOCAL_ID_CHARS = 128

MAX_LISTED = 3
"""Maximum number of listed unknown names in an observation. An observation can have thousands, and the search for a
similar name is slow."""

_BOUNDS: Mapping[str, Mapping[str, Any]] = {
    "percentage": {"min": 0, "max": 100},
    "color_temperature": {"min": KELVIN_RANGE[0], "max": KELVIN_RANGE[1], "unit": "kelvin"},
}
"""For each schema type, the limits of a capability's commands."""

_device_class = matching(r"[a-z][a-z0-9_]{0,63}", 'a word like "plug"')


def _attributes(value: Any) -> Mapping[str, Value]:
    if not isinstance(value, dict):
        raise Invalid('must be a table like { power = "off" }')
    dropped: Dropped = {}
    valid = check_attributes(value, {}, dropped)
    if dropped:
        raise Invalid(f"contains {'; and '.join(_fault(name, why) for name, why in dropped.items())}")
    return valid


def _fault(name: str, reason: str) -> str:
    if name == "custom":
        return 'custom, which must be written in quotes, as one name: "custom.virtual.mode"'
    near = None if name in KNOWN_ATTRIBUTES else nearest(name, KNOWN_ATTRIBUTES)
    return f"{name}, which {reason}{suggest(near)}"


def _options(value: Any) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise Invalid('must be a table like { "custom.virtual.mode" = ["eco", "boost"] }')
    for name, words in value.items():
        if not isinstance(words, list) or not words or not all(isinstance(each, str) and each for each in words):
            raise Invalid(f"must list the options of {name} as an array of words")
        if len(set(words)) < len(words):
            raise Invalid(f"lists an option of {name} twice")
    return {name: tuple(words) for name, words in value.items()}


class VirtualDevice(Settings, frozen=True, kw_only=True):
    """One device. `attributes` contains the device's initial values. `options` are the possible words of a text
    attribute.

    Raises `Invalid` for options that do not match the attributes.
    """

    id: str = key(lambda value: strip_text(string(value), MAX_LOCAL_ID_CHARS, is_id=True))
    name: str | None = key(lambda value: strip_text(string(value), MAX_NAME_CHARS), required=False)
    kind: str = key(one_of(*DeviceKind), DeviceKind.VIRTUAL)
    class_: str | None = key(_device_class, required=False)
    attributes: Mapping[str, Value] = key(_attributes)
    options: Mapping[str, tuple[str, ...]] = key(_options, {}, required=False)

    def __post_init__(self) -> None:
        faults = [fault for name in self.options for fault in self._faults_of_options(name)]
        if faults:
            raise Invalid("; and ".join(faults))

    def _faults_of_options(self, name: str) -> Iterable[str]:
        initial, known = self.attributes.get(name), KNOWN_ATTRIBUTES.get(name)
        if not isinstance(initial, str) or (known is not None and known.read_only):
            yield f"has options for {name}, which is not a text attribute that can be set"
            return
        if initial not in self.options[name]:
            words = ", ".join(self.options[name])
            yield f"sets {name} to '{initial}', which is not one of its options ({words})"
        if known is not None and known.values and (unknown := set(self.options[name]) - set(known.values)):
            yield f"has options for {name} that this attribute cannot have: {', '.join(sorted(unknown))}"

    @property
    def unusual(self) -> dict[str, str]:
        """The faults of initial values with a unit of another quantity or an impossible number, which versions before
        0.3.0 accepted. These attributes accept all units and numbers."""
        faults = {name: measure_fault(name, value) for name, value in self.attributes.items()}
        return {name: fault for name, fault in faults.items() if fault is not None}

    def commands(self) -> tuple[CommandSpec, ...]:
        """Return the device's commands: all actions of its attributes, except read-only ones."""
        found = (self._command(name, value) for name, value in self.attributes.items())
        return tuple(spec for spec in found if spec is not None)

    def _command(self, name: str, value: Value) -> CommandSpec | None:
        options = self.options.get(name, ())
        if is_custom(name):
            type_ = _type_of(value)
            return type_ and CommandSpec(capability=name, actions=("set",), values=options, type=type_)
        known = CAPABILITIES.get(name)
        if known is None or known.read_only:
            return None
        unit = {"unit": value["unit"]} if known.type == "measurement" else {}
        return CommandSpec(
            capability=name, actions=known.actions, values=options, **_BOUNDS.get(known.type, {}), **unit
        )

    def check(self, attributes: Mapping[str, Value]) -> dict[str, Value]:
        """Return these attributes in canonical form. Raise `Invalid` if the device cannot have one of them. At most
        `MAX_LISTED` unknown names are listed."""
        dropped: Dropped = {}
        own = {name: value for name, value in attributes.items() if name in self.attributes}
        valid = check_attributes(own, {}, dropped)
        unknown = [name for name in attributes if name not in own]
        faults = [self._unknown(name) for name in unknown[:MAX_LISTED]]
        if len(unknown) > MAX_LISTED:
            faults.append(f"{len(unknown) - MAX_LISTED} further names are not attributes of '{self.id}'")
        faults += [f"{name} {reason}" for name, reason in dropped.items()]
        faults += [fault for name, value in valid.items() if (fault := self._fault(name, value)) is not None]
        if faults:
            raise Invalid("; and ".join(faults))
        return valid

    def _unknown(self, name: str) -> str:
        near = nearest(name, self.attributes)
        hint = suggest(near, f"its attributes: {', '.join(self.attributes) or 'none'}")
        return f"{format_value(name)} is not an attribute of '{self.id}'{hint}"

    def _fault(self, name: str, value: Value) -> str | None:
        if is_custom(name) and _type_of(value) != _type_of(self.attributes[name]):
            return f"{name} must be a {_type_of(self.attributes[name]) or 'value'}, as in the configuration"
        if name in self.options and value not in self.options[name]:
            return f"{name} must be one of {', '.join(self.options[name])}"
        fault = measure_fault(name, value)
        return None if fault is None or name in self.unusual else f"{name} {fault}"


def _type_of(value: Value) -> Any:
    """Return the schema type of a custom value, or None if no command can set it."""
    if isinstance(value, bool):
        return "boolean"
    return "number" if is_number(value) else "string" if isinstance(value, str) else None


class Virtual(Settings, frozen=True, kw_only=True):
    """Settings of an enabled section. Raises `Invalid` if two devices have the same id."""

    devices: tuple[VirtualDevice, ...] = rows(VirtualDevice)

    def __post_init__(self) -> None:
        ids = [each.id for each in self.devices]
        if twice := sorted({id_ for id_ in ids if ids.count(id_) > 1}):
            raise Invalid(f"uses these ids for more than one device: {', '.join(twice)}")


def _warn(settings: Virtual) -> tuple[str, str] | None:
    """Return a warning about the first device with an unusual value."""
    found = ((each.id, *fault) for each in settings.devices for fault in each.unusual.items())
    return next((("devices", f"contains '{id_}', whose {name} {fault}") for id_, name, fault in found), None)


VIRTUAL = AdapterKind(
    name="virtual",
    title="Virtual devices",
    settings=Virtual,
    device_kinds=frozenset(DeviceKind),
    operations=frozenset({"observe"}),
    warn=_warn,
)
