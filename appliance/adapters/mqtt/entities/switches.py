"""Switches, locks, fans, sirens, alarm panels, vacuum cleaners and lawn mowers: what is told a word."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import orjson

from appliance.adapters.mqtt.entities.entity import SWITCHED, Entity, Intent, Update, number_parser
from appliance.adapters.mqtt.payloads import Outgoing, parse_object
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value


class OnOff(Entity):
    """What switches, fans and sirens have in common: a topic to switch, and two payloads each way."""

    def setup(self) -> None:
        self.states: dict[str, Value] = {
            self.config.text(f"state_{state}", self.payload(state)): state for state in ("off", "on")
        }
        self.states |= dict.fromkeys(self.config.texts("_states_on"), "on")
        if not self.has_target("command_topic"):
            raise Invalid("has no command topic")

    def add_power(self, *templates: str) -> None:
        """Read the state, and offer to switch."""
        self.read("state_topic", self.words(self.states, "power"), *templates, shows=("power",))
        self.offer("power", SWITCHED, lambda command: self.switch(self.toggled(command.action)))
        self.claims = ("power",)

    def switch(self, action: str) -> Intent:
        """The payload for `on` or `off`, through the template if there is one."""
        return self.intent("command", self.payload(action), {"power": action})


class Switch(OnOff):
    """A switch or an outlet, which is a plug."""

    def setup(self) -> None:
        super().setup()
        self.device_class = "plug" if self.config.text("device_class") == "outlet" else "switch"
        self.add_power("value_template")


class LockEntity(Entity):
    """A lock; opening its latch is the action `open` of its custom attribute. One with a code asks for it."""

    def setup(self) -> None:
        self.need()
        states = ("locked", "unlocked", "jammed")
        words: dict[str, Value] = {self.config.text(f"state_{state}", state.upper()): state for state in states}
        words.setdefault(self.config.text("state_open", "OPEN"), "unlocked")
        words.setdefault(self.config.text("payload_reset", "None"), None)
        self.read("state_topic", self.words(words, "lock"), "value_template")
        self.offer("lock", ("lock", "unlock"), self._write)
        if "payload_open" in self.config:
            self.offer(self.custom, ("open",), self._write)
        self.claims = ("lock",)

    def _write(self, command: Command) -> Intent:
        code = self.code_of(command) if "code_format" in self.config else ""
        shows = {"lock": f"{command.action}ed"} if command.action != "open" else {}
        return self.intent("command", self.payload(command.action), shows, code=code)


class Fan(OnOff):
    """A fan; its speed is `custom.mqtt.percentage`, its preset `preset_mode`. No speed switches it off."""

    def setup(self) -> None:
        super().setup()
        self._low, high = self.config.bounds("speed_range_min", "speed_range_max", 1, 100)
        self._speeds = high - self._low + 1
        self.add_power("state_value_template")
        self._add_speed()
        presets = self.config.texts("preset_modes")
        words = {self.config.text("payload_reset_preset_mode", "None"): None, **{each: each for each in presets}}
        schema: dict[str, Value] | None = {"values": list(presets)} if presets else None
        self.add("preset_mode", "preset_mode", self.words(words, "preset_mode"), schema)
        swings = {
            self.config.text(f"payload_oscillation_{word}", f"oscillate_{word}"): is_on
            for word, is_on in (("off", False), ("on", True))
        }
        payloads = {is_on: payload for payload, is_on in swings.items()}
        key = "custom.mqtt.oscillation"
        self.add(key, "oscillation", self.words(swings, key), {"type": "boolean"},
                  to_payload=payloads.__getitem__, to_shown=swings.__getitem__)  # fmt: skip
        key, ways = "custom.mqtt.direction", ["forward", "reverse"]
        parse = self.words({way: way for way in ways}, key)
        self.add(key, "direction", parse, {"type": "enum", "values": ways})
        self.claims = ("power", "preset_mode") if "preset_mode" in self.offers else ("power",)

    def _add_speed(self) -> None:
        key, percent = "custom.mqtt.percentage", {"type": "percentage", "min": 0, "max": 100}
        reset = self.config.text("payload_reset_percentage", "None")
        parse = number_parser(key, self._percent, ignores_unknown=True)
        self.add(key, "percentage", lambda text: {key: None} if text == reset else parse(text), percent,
                  to_payload=self._raw, to_shown=self._percent)  # fmt: skip
        if (offer := self.offers.get(key)) is not None:
            write = offer.write
            self.offer(
                key, ("set",), lambda command: write(command) if command.value else self.switch("off"), **percent
            )

    def _percent(self, raw: float) -> int:
        return min(max(int((raw - self._low + 1) / self._speeds * 100), 0), 100)

    def _raw(self, percent: int) -> int:
        return math.ceil(percent / 100 * self._speeds + self._low - 1)


class Siren(OnOff):
    """A siren: a boolean custom attribute; tone, volume and duration switch it on with that."""

    def setup(self) -> None:
        super().setup()
        self.read("state_topic", self._parse, "state_value_template", "value_template")
        self.offer(self.custom, ("set",), lambda command: self._write("on" if command.value else "off"),
                   type="boolean")  # fmt: skip
        if tones := self.config.texts("available_tones"):
            self._offer_extra("tone", type="enum", values=list(tones))
        if self._can_vary("support_duration", "duration"):
            self._offer_extra("duration", type="integer", min=0)
        if self._can_vary("support_volume_set", "volume_level"):
            self._offer_extra("volume_level", type="number", min=0, max=1)

    def _can_vary(self, key: str, variable: str) -> bool:
        """Home Assistant takes them unless told otherwise; Lares where a template or the key speaks of them."""
        return self.config.flag(key, variable in self.config.text("command_template"))

    def _offer_extra(self, name: str, **schema: Value) -> None:
        key = f"custom.mqtt.{name}"
        self.more_keys += (key,)
        self.offer(key, ("set",), lambda command: self._write("on", **{name: command.value}), **schema)

    def _parse(self, text: str) -> Update:
        """A word, or `{"state": …, "tone": …}`."""
        more: dict[str, Value] = {}
        if text.startswith("{"):
            state = parse_object(text, "a state")
            more = {f"custom.mqtt.{key}": state[key] for key in ("tone", "duration", "volume_level") if key in state}
            text = str(state.get("state", ""))
        return {**more, **self.words({state: action == "on" for state, action in self.states.items()})(text)}

    def _write(self, action: str, **extra: Value) -> Intent:
        """The payload for on or off; each may have its template. Without one it is JSON, what varies with it."""
        keys = ("command_template",) if action == "on" else ("command_off_template", "command_template")
        payload, template = self.payload(action), self.config.template(*keys)
        if template is None:
            payload = orjson.dumps({"state": payload, **extra}).decode()
        message = self.publish_with(template, "command_topic", payload, state=payload, **extra)
        shows = {self.custom: action == "on"} if "state_topic" in self.config else {}
        return Intent(messages=(message,), shows=shows)


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
