"""Vacuum cleaners."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.mqtt.messages import parse_object
from appliance.adapters.mqtt.platforms.entity import Update, clamped, stated_number
from appliance.adapters.mqtt.platforms.ordered import Ordered
from appliance.home.values import Value

_VACUUM: Mapping[str, tuple[str, ...]] = {
    "start": ("cleaning",),
    "pause": ("paused", "idle"),
    "stop": ("idle", "paused"),
    "return_to_base": ("returning", "docked"),
    "clean_spot": ("cleaning",),
    "locate": (),
}
"""Commands of a vacuum cleaner, and the states that confirm each command."""


class Vacuum(Ordered):
    """A vacuum cleaner: its state as JSON, its battery, and its fan speed."""

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
        state = parse_object(text, "the state")
        update: dict[str, Value] = {}
        if isinstance(state.get("state"), str):
            update[self.custom] = state["state"][:100]
        elif "state" in state and state["state"] is None:
            update[self.custom] = None
        if isinstance(state.get("fan_speed"), str):
            update["custom.mqtt.fan_speed"] = state["fan_speed"][:100]
        if (level := stated_number(state.get("battery_level"))) is not None:
            update["battery"] = clamped(level)
        return update
