"""Alarm panels, vacuum cleaners and lawn mowers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from appliance.adapters.mqtt.entities.entity import Entity, Intent, Update
from appliance.adapters.mqtt.payloads import Outgoing, parse_object
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value

_ALARM_MODES: Mapping[str, str] = {
    "armed_home": "arm_home",
    "armed_away": "arm_away",
    "armed_night": "arm_night",
    "armed_vacation": "arm_vacation",
    "armed_custom_bypass": "arm_custom_bypass",
    "triggered": "trigger",
}
"""What an alarm panel shows, and what it is asked for."""

_ALARM_STATES = ("disarmed", *_ALARM_MODES, "arming", "disarming", "pending")

_VACUUM: Mapping[str, tuple[str, ...]] = {
    "start": ("cleaning",),
    "pause": ("paused", "idle"),
    "stop": ("idle", "paused"),
    "return_to_base": ("returning", "docked"),
    "clean_spot": ("cleaning",),
    "locate": (),
}
"""What a vacuum cleaner is told, and one of what it shows then."""

_MOWER: Mapping[str, tuple[str, ...]] = {
    "start_mowing": ("mowing",),
    "pause": ("paused",),
    "dock": ("returning", "docked"),
}
"""What a lawn mower is told, and one of what it shows then."""


def _shows_one_of(attribute: str, states: tuple[str, ...]) -> Callable[[Entity], bool]:
    return lambda entity: entity.attributes.get(attribute) in states


class AlarmPanel(Entity):
    """An alarm panel: its custom attribute shows its mode, and is set to one that it supports, all unless it says."""

    def setup(self) -> None:
        self.need()
        supported = self.config.texts("supported_features", tuple(_ALARM_MODES.values()))
        modes: list[Value] = [mode for mode, feature in _ALARM_MODES.items() if feature in supported]
        self.read("state_topic", self.words({state: state for state in _ALARM_STATES}), "value_template")
        self.offer(self.custom, ("set",), self._write, type="enum", values=["disarmed", *modes])

    def _write(self, command: Command) -> Intent:
        """The payload of the mode as `action` of the template, with the code where it asks for one."""
        mode = str(command.value)
        feature = "disarm" if mode == "disarmed" else _ALARM_MODES[mode]
        action, code = self.payload(feature), self._checked_code(command, feature)
        message = self.publish("command", action, action=action, code=code)
        if "state_topic" not in self.config:
            return Intent(messages=(message,))
        begun = (mode, "disarming") if mode == "disarmed" else (mode, "arming", "pending")
        return Intent(messages=(message,), shows={self.custom: mode}, begins=_shows_one_of(self.custom, begun))

    def _checked_code(self, command: Command, feature: str) -> str:
        kind = feature if feature in ("disarm", "trigger") else "arm"
        expected = self.config.text("code")
        if not expected or not self.config.flag(f"code_{kind}_required", True):
            return command.code or ""
        code = self.code_of(command)
        if expected not in ("REMOTE_CODE", "REMOTE_CODE_TEXT") and code != expected:
            raise Invalid(f"the code for {command.capability} is wrong")
        return code


class Ordered(Entity):
    """What shows a word and is told others: its custom attribute is set to one of its orders."""

    def offer_orders(
        self, orders: Mapping[str, tuple[str, ...]], taken: list[Value], message: Callable[[str], Outgoing]
    ) -> None:
        """Offer those orders that it takes.

        A command is done when one of the states of its order is shown; at once where there is no state.
        """

        def write(command: Command) -> Intent:
            order = str(command.value)
            sent, states = (message(order),), orders[order]
            if not states or not self.readers:
                return Intent(messages=sent)
            return Intent(messages=sent, shows={self.custom: states[0]}, begins=_shows_one_of(self.custom, states))

        if taken:
            self.offer(self.custom, ("set",), write, type="enum", values=taken)


class Vacuum(Ordered):
    """A vacuum cleaner: its state as JSON, its battery and the speed of its fan."""

    def setup(self) -> None:
        features = self.config.texts("supported_features", ("start", "stop", "return_home", "clean_spot"))
        named = {order: "return_home" if order == "return_to_base" else order for order in _VACUUM}
        taken: list[Value] = [order for order, feature in named.items() if feature in features]
        self.read("state_topic", self._parse, "value_template", shows=("", "battery", "custom.mqtt.fan_speed"))
        if self.has_target("command_topic"):
            self.offer_orders(
                _VACUUM, taken, lambda order: self.publish("command", self.config.text(f"payload_{order}", order))
            )
        key, speeds = "custom.mqtt.fan_speed", self.config.texts("fan_speed_list")
        if speeds and self.can("set_fan_speed"):
            self.offer(key, ("set",), lambda each: self.intent("set_fan_speed", each.value, {key: each.value}),
                       type="enum", values=list(speeds))  # fmt: skip
        if self.can("send_command"):
            self.offer("custom.mqtt.send_command", ("set",), lambda each: self.intent("send_command", each.value),
                       type="string")  # fmt: skip

    def _parse(self, text: str) -> Update:
        state = parse_object(text, "a state")
        update: dict[str, Value] = {}
        if isinstance(state.get("state"), str):
            update[self.custom] = state["state"][:100]
        elif "state" in state and state["state"] is None:
            update[self.custom] = None
        if isinstance(state.get("fan_speed"), str):
            update["custom.mqtt.fan_speed"] = state["fan_speed"][:100]
        if isinstance(level := state.get("battery_level"), int | float):
            update["battery"] = min(max(round(level), 0), 100)
        return update


class LawnMower(Ordered):
    """A lawn mower: its activity, and a topic for each order."""

    def setup(self) -> None:
        states = ("mowing", "paused", "docked", "returning", "error")
        self.read("activity_state_topic", self.words({each: each for each in states}), "activity_value_template")
        self.offer_orders(_MOWER, [each for each in _MOWER if self.can(f"{each}_command")],
                          lambda order: self.publish(f"{order}_command", order))  # fmt: skip
