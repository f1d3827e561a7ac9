"""Vacuum cleaners."""

from __future__ import annotations

import json
from collections.abc import Mapping

from appliance.adapters.mqtt.messages import parse_object
from appliance.adapters.mqtt.platforms.command_words import CommandWords
from appliance.adapters.mqtt.platforms.entity import shows_one_of
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.platforms.numbers import percentage_parser, read_number
from appliance.adapters.mqtt.platforms.payloads import Update, read_parts, shown_word
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value

_VACUUM: Mapping[str, tuple[str, ...]] = {
    "start": ("cleaning",),
    "pause": ("paused", "idle"),
    "stop": ("idle", "paused"),
    "return_to_base": ("returning", "docked"),
    "clean_spot": ("cleaning",),
    "locate": (),
}
"""Commands of a vacuum cleaner, and the states that confirm them."""

_STATES = ("cleaning", "docked", "paused", "idle", "returning", "error")
"""The standard states. A vacuum cleaner may report other states."""

_SEGMENTS, _MAX_SEGMENTS = "custom.mqtt.segments", 100
"""The attribute with the names of the map's segments by id, and the maximum number of segments."""


class Vacuum(CommandWords):
    """A vacuum cleaner: its state as JSON, its battery, its fan speed, and the segments of its map."""

    def setup(self) -> None:
        features = self.config.texts("supported_features", ("start", "stop", "return_home", "clean_spot"))
        named = {word: "return_home" if word == "return_to_base" else word for word in _VACUUM}
        offered: list[Value] = [word for word, feature in named.items() if feature in features]
        self.add_reader(
            "state_topic", Vacuum._parse, "value_template", reports=("", "battery", "custom.mqtt.fan_speed")
        )
        if self.has_target("command_topic"):
            self.offer_words(
                _VACUUM,
                offered,
                lambda self, word: self.publish("command", self.config.text(f"payload_{word}", word)),
            )
        key, speeds = "custom.mqtt.fan_speed", self.config.texts("fan_speed_list")
        if speeds and self.can("set_fan_speed"):
            self.add_offer(
                key,
                ("set",),
                lambda self, each: self.intent("set_fan_speed", each.value, {key: each.value}),
                type="enum",
                values=list(speeds),
            )
        if self.can("send_command"):
            self.add_offer("custom.mqtt.send_command", ("set",), Vacuum._send,
                       type="string")  # fmt: skip
        if self.can("clean_segments_command"):
            self.more_attributes = (_SEGMENTS,)
            self.add_offer("custom.mqtt.clean_segments", ("set",), Vacuum._clean_segments, type="string")

    def _send(self, command: Command) -> Intent:
        return self.intent("send_command", command.value)

    def _clean_segments(self, command: Command) -> Intent:
        """Return the message for a list of segments, which are ids or names separated by commas. Raise `Invalid`."""
        found = self.attributes.get(_SEGMENTS)
        known = found if isinstance(found, dict) else {}
        ids = {str(name).casefold(): id_ for id_, name in known.items()} | {id_: id_ for id_ in known}
        words = [word for each in str(command.value).split(",") if (word := each.strip())]
        unknown = [word for word in words if known and word not in ids and word.casefold() not in ids]
        if unknown or not words:
            listed = (
                ", ".join(f"{id_} ({name})" for id_, name in known.items())
                or "the segments' ids, separated by commas"
            )
            raise Invalid(f"value of {command.capability}: must be one or more of {listed}")
        chosen: list[Value] = [ids.get(word, ids.get(word.casefold(), word)) for word in words]
        sent = self.publish("clean_segments_command", json.dumps(chosen), value=chosen)
        begins = shows_one_of(self.custom_key, ("cleaning",))
        return Intent(messages=(sent,), shows={self.custom_key: "cleaning"}, begins=begins, fails=("error",))

    def _parse(self, text: str) -> Update:
        state = parse_object(text, "the state")
        update: dict[str, Value] = {}
        if "state" in state:
            update[self.custom_key] = shown_word(state["state"], _STATES)
        if "fan_speed" in state:
            update["custom.mqtt.fan_speed"] = shown_word(state["fan_speed"], self.config.texts("fan_speed_list"))
        if isinstance(segments := state.get("segments"), dict) and self.more_attributes:
            update[_SEGMENTS] = {id_[:40]: str(name)[:100] for id_, name in [*segments.items()][:_MAX_SEGMENTS]}
        level = str(state.get("battery_level", ""))
        return read_parts(lambda: read_number(level, "battery", percentage_parser("battery")), lambda: update)
