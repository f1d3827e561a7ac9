"""Lights with the default schema: one topic per property."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from appliance.adapters.mqtt.messages import Outgoing
from appliance.adapters.mqtt.platforms.entity import Intent, Update, is_unknown, number_parser, parse_number
from appliance.adapters.mqtt.platforms.light import (
    COLOR_OF_MODE,
    NOTATIONS,
    RGB_MODES,
    WHITES,
    LightChange,
    LightEntity,
    color_of,
)
from appliance.home.commands import Command


class TopicLight(LightEntity):
    """A light with one topic per property."""

    def setup(self) -> None:
        self._has_brightness = self.can("brightness_command")
        modes = ("rgb", "rgbw", "rgbww", "hs", "xy", "color_temp", "white")
        self._modes = frozenset(name for name in modes if self.can(f"{name}_command"))
        states = {self.payload(power): power for power in ("off", "on")}
        parse_brightness = number_parser("brightness", self.brightness_of, ignores_unknown=True)
        self._by_notation: dict[str, Update] = {}
        self._named_mode = ""
        self._has_mode_topic = self.config.topic("color_mode_state_topic") is not None
        self.read("state_topic", self.words(states, "power"), "state_value_template", "value_template",
                  shows=("power",))  # fmt: skip
        # first, because one message may contain the mode and colours
        self._read("color_mode", "color_mode", self._parse_mode)
        self._read("brightness", "brightness", parse_brightness)
        self._read("color_temp", "color_temperature", self._parse_temperature)
        for name in (*RGB_MODES, "hs", "xy"):
            whites = {"rgbw": WHITES[:1], "rgbww": WHITES[1:]}.get(name, ())
            self._read(
                name, COLOR_OF_MODE[name], self._color_parser(COLOR_OF_MODE[name].removeprefix("color_")), *whites
            )
        self._read("effect", "effect", self.effect_update)
        self.offer_all(can_switch=self.has_target("command_topic"))
        if not self.has_target("effect_command_topic"):
            self.offers.pop("effect", None)
            self.offers.pop("custom.mqtt.effect", None)

    def _read(self, name: str, attribute: str, parse: Callable[[str], Update], *more: str) -> None:
        self.read(f"{name}_state_topic", parse, f"{name}_value_template", shows=(attribute, *more))

    def _parse_mode(self, text: str) -> Update:
        if update := self.mode_update(text):
            self._named_mode = text
        return {**update, **self._by_notation.get(COLOR_OF_MODE.get(text, ""), {})} if update else update

    def _of_notation(self, mode: str, update: Update) -> Update:
        """Return a colour with the mode that it sets.

        If a topic reports the mode, a colour sets no mode. It is shown only while that topic reports the colour's
        mode.
        """
        if not self._has_mode_topic:
            return {**self.mode_update(mode), **update}
        self._by_notation[COLOR_OF_MODE[mode]] = update
        named = self._named_mode or str(self.attributes.get("color_mode"))
        return update if COLOR_OF_MODE.get(named) == COLOR_OF_MODE[mode] else {}

    def _parse_temperature(self, text: str) -> Update:
        update = self.parse_temperature(text)
        return self._of_notation("color_temp", update) if update else {}

    def _color_parser(self, notation: str) -> Callable[[str], Update]:
        """Return a parser of lists such as `255,0,64`. One or two white values may follow the three colours."""

        def parse(text: str) -> Update:
            if text == "" or is_unknown(text):
                return {}
            parts = [parse_number(part) for part in text.split(",")[:5]]
            count = len(NOTATIONS[notation])
            if len(parts) < count or (len(parts) > count and notation != "rgb"):
                return {}
            whites = self.whites_update(parts[count:]) if notation == "rgb" else {}
            return self._of_notation(notation, {**color_of(notation, parts[:count]), **whites})

        return parse

    def _write(self, command: Command) -> Intent:
        intent, change = super()._write(command), self.change(command)
        return replace(intent, shows=change.shows) if change.name and not self._switches_on(change) else intent

    def _switches_on(self, change: LightChange) -> bool:
        """Return whether a property needs a switch-on message before or after its own message."""
        is_brightness = change.name == "brightness" and self.config.text("on_command_type") == "brightness"
        return "power" in self.offers and not is_brightness

    def messages(self, change: LightChange, command: Command) -> tuple[Outgoing, ...]:
        """Return the property's message, with the switch-on message before or after it."""
        if not change.name:
            return (self._switch(change.power),)
        message, order = self._property(change), self.config.text("on_command_type", "last")
        if order == "brightness" or not self._switches_on(change):
            return (message,)
        return (self._switch("on"), message) if order == "first" else (message, self._switch("on"))

    def _switch(self, power: str) -> Outgoing:
        if power == "on" and self.config.text("on_command_type") == "brightness" and self._has_brightness:
            percent = int(self.attributes.get("brightness") or 100)
            return self.publish("brightness_command", self.raw_brightness(percent))
        return self.publish_with(None, "command_topic", self.payload(power))

    def _property(self, change: LightChange) -> Outgoing:
        """Return the message of one property. A colour is the list of its parts, with 0 for white."""
        if change.name == "whites":
            return self._with_whites(self.color_with(change.value))
        if change.name not in ("rgb", "hs", "xy"):
            return self.publish(f"{change.name}_command", change.value)
        names: dict[str, Any] = {name: change.value[key] for name, key, _ in NOTATIONS[change.name]}
        if change.name == "rgb" and not self.has_target("rgb_command_topic"):
            is_single = self.has_target("rgbw_command_topic")
            return self._with_whites([*names.values(), 0] if is_single else [*names.values(), 0, 0])
        return self.publish(f"{change.name}_command", ",".join(map(str, names.values())), **names)

    def _with_whites(self, parts: list[Any]) -> Outgoing:
        """Return the message of a colour followed by the white channels."""
        whites = ("white",) if len(parts) == 4 else ("cold_white", "warm_white")
        names: dict[str, Any] = dict(zip(("red", "green", "blue", *whites), parts, strict=True))
        return self.publish(f"rgb{'w' * len(whites)}_command", ",".join(map(str, parts)), **names)
