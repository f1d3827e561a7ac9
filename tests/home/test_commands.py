"""Commands: the fields of a JSON object, and the error message for a wrong field."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import BadAnswer, Invalid
from appliance.home.capabilities import CAPABILITIES
from appliance.home.commands import Command, without_toggle

WARM = {"value": 2900, "unit": "kelvin"}

SAMPLES: dict[str, Any] = {
    "measurement": {"value": 21, "unit": "celsius"},
    "accumulation": {"value": 1, "unit": "kWh", "period": "day"},
    "number": 1.5,
    "integer": 4,
    "string": "eco",
    "boolean": True,
    "integer_or_string": "N",
    "percentage": 40,
    "rgb_color": {"r": 1, "g": 2, "b": 3},
    "hex_color": "#0a0b0c",
    "xy_color": {"x": 0.25, "y": 0.5},
    "hs_color": {"hue": 200, "saturation": 60},
    "color_temperature": WARM,
}
"""A valid value of each type except enum."""

PAIRS = [(key, action) for key, entry in CAPABILITIES.items() for action in entry.actions]


def command(capability: Any, action: Any, **more: Any) -> dict[str, Any]:
    return {"capability": capability, "action": action, **more}


def sample(key: str) -> Any:
    """Return a value that the capability accepts."""
    entry = CAPABILITIES[key]
    return entry.values[0] if entry.values else SAMPLES[entry.type]


def refusal(raw: Any) -> str:
    """Return the error message."""
    with pytest.raises(Invalid) as refused:
        Command.parse(raw)
    return str(refused.value)


@pytest.mark.parametrize(
    ("action", "shown", "sent"), [("toggle", "on", "off"), ("toggle", "off", "on"), ("on", None, "on")]
)
def test_a_toggle_is_sent_as_the_opposite_of_the_shown_power(action: str, shown: Any, sent: str) -> None:
    command = Command(capability="power", action=action, transition_secs=2)
    expected = Command(capability="power", action=sent, transition_secs=2)
    assert without_toggle(command, shown, "lamp") == expected


@pytest.mark.parametrize("shown", [None, True, "dimmed", {"value": 1}])
def test_a_toggle_without_a_shown_power_is_refused(shown: Any) -> None:
    with pytest.raises(
        BadAnswer, match="lamp does not report whether it is on; instead of `toggle`, send `on` or `off`"
    ):
        without_toggle(Command(capability="power", action="toggle"), shown, "lamp")


def test_only_actions_that_set_or_step_take_a_value() -> None:
    for key, action in PAIRS:
        bare, valued = command(key, action), command(key, action, value=sample(key))
        nulled = command(key, action, value=None)
        if action in ("set", "increase", "decrease"):
            assert Command.parse(valued).value == sample(key)
            assert refusal(bare) == refusal(nulled) == f"{key}: the action '{action}' needs a value"
        else:
            assert Command.parse(bare) == Command.parse(nulled) == Command(capability=key, action=action)
            assert refusal(valued) == f"{key}: the action '{action}' takes no value"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (command("power", "on"), Command(capability="power", action="on")),
        (command("brightness", "set", value=50.0), Command(capability="brightness", action="set", value=50)),
        (command("brightness", "increase", value=0), Command(capability="brightness", action="increase", value=0)),
        (
            command("color_temperature", "decrease", value={"value": 100, "unit": "kelvin"}),
            Command(capability="color_temperature", action="decrease", value={"value": 100, "unit": "kelvin"}),
        ),
        (command("muted", "set", value=False), Command(capability="muted", action="set", value=False)),
        (command("media_app", "set", value=""), Command(capability="media_app", action="set", value="")),
        (
            command("color_temperature", "set", value={**WARM, "mood": "cosy"}),
            Command(capability="color_temperature", action="set", value=WARM),
        ),
        (
            command("power", "off", transition_secs=2),
            Command(capability="power", action="off", transition_secs=2.0),
        ),
        (
            command("power", "off", transition_secs=0),
            Command(capability="power", action="off", transition_secs=0.0),
        ),
        (command("power", "off", transition_secs=None), Command(capability="power", action="off")),
        (command("power", "toggle", id="x", source=["y"]), Command(capability="power", action="toggle")),
    ],
    ids=repr,
)
def test_a_valid_command_is_parsed_and_unknown_fields_are_ignored(raw: Any, expected: Command) -> None:
    assert repr(Command.parse(raw)) == repr(expected)


UNSOUND: dict[str, list[Any]] = {
    "a command must be an object with capability and action": [None, [], ["power", "on"], "power on", 5, True, 1.5],
    "capability must be a non-empty string": [
        *({}, {"action": "on"}),
        *(command(capability, "on") for capability in ("", None, 5, ["power"])),
    ],
    "action must be a non-empty string": [
        *({"capability": "power"}, command("power", ""), command("power", None), command("power", {"on": 1})),
    ],
    "unknown capability 'Power'; GET /capabilities lists them": [command("Power", "on")],
    "unknown capability 'power '; GET /capabilities lists them": [command("power ", "on")],
    "unknown capability 'custom.roku'; GET /capabilities lists them": [command("custom.roku", "press")],
    "custom.roku.app: the action 'set' needs a value": [command("custom.roku.app", "set")],
    "custom.roku.app: the action 'press' takes no value": [command("custom.roku.app", "press", value=1)],
    "power has no action 'set'; its actions are: on, off, toggle": [command("power", "set")],
    "power has no action 'ON'; its actions are: on, off, toggle": [command("power", "ON")],
    "state has no action 'set'; its actions are: get": [command("state", "set", value="online")],
    "power: the action 'on' takes no value": [command("power", "on", value=each) for each in (True, 0, "", SAMPLES)],
    "value of brightness: must be an integer from 0 to 100, not 101": [command("brightness", "set", value=101)],
    "value of brightness: must be an integer from 0 to 100, not 'a lot'": [
        command("brightness", "increase", value="a lot")
    ],
    "value of brightness: must be an integer from 0 to 100, not true": [command("brightness", "set", value=True)],
    "value of color_temperature: value must be an integer from 2200 to 7000, not 7001": [
        command("color_temperature", "set", value={"value": 7001, "unit": "kelvin"})
    ],
    "value of color_temperature: value must be an integer from 0 to 7000, not 7001": [
        command("color_temperature", "increase", value={"value": 7001, "unit": "kelvin"})
    ],
    "value of color_temperature: must be an object with value, unit, not 4000": [
        command("color_temperature", "set", value=4000)
    ],
    "value of effect: must be one of none, flash, strobe, colorloop, random, not 'disco'": [
        command("effect", "set", value="disco")
    ],
}
"""Maps an error message to the wrong commands that cause it."""


def test_an_invalid_command_is_refused_with_the_problem_and_the_choices() -> None:
    for sentence, stated in UNSOUND.items():
        assert {refusal(raw) for raw in stated} == {sentence}


@pytest.mark.parametrize("seconds", [-0.001, -1, "2", True, [], {}, math.nan, math.inf, 10**400], ids=repr)
def test_a_transition_is_a_number_of_seconds_from_zero(seconds: Any) -> None:
    sentence = refusal(command("power", "on", transition_secs=seconds))
    assert sentence.startswith("transition_secs must be 0 or more seconds, not ")


def test_a_command_is_shown_as_capability_and_action() -> None:
    assert str(Command.parse(command("brightness", "set", value=3))) == "brightness set"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
COMMANDS = st.fixed_dictionaries(
    {},
    optional={
        "capability": st.sampled_from(sorted(CAPABILITIES)) | ANYTHING,
        "action": st.sampled_from(sorted({action for _, action in PAIRS})) | ANYTHING,
        "value": st.sampled_from(list(SAMPLES.values())) | ANYTHING,
        "transition_secs": ANYTHING,
    },
)


@given(raw=COMMANDS | ANYTHING)
def test_any_input_is_a_canonical_command_or_refused_in_one_line(raw: Any) -> None:
    try:
        parsed = Command.parse(raw)
    except Invalid as fault:
        assert str(fault).isprintable()
        return
    again = command(parsed.capability, parsed.action, value=parsed.value, transition_secs=parsed.transition_secs)
    assert repr(Command.parse(again)) == repr(parsed)
    assert parsed.action in CAPABILITIES[parsed.capability].actions
