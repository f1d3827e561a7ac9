"""Lawn mowers."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.mqtt.platforms.command_words import CommandWords
from appliance.adapters.mqtt.platforms.payloads import WordParser

_MOWER: Mapping[str, tuple[str, ...]] = {
    "start_mowing": ("mowing",),
    "pause": ("paused",),
    "dock": ("returning", "docked"),
}
"""Commands of a lawn mower, and the states that confirm them."""


class LawnMower(CommandWords):
    """A lawn mower: its activity, and one topic per command."""

    def setup(self) -> None:
        states = ("mowing", "paused", "docked", "returning", "error")
        self.add_reader(
            "activity_state_topic",
            WordParser({each: each for each in states}),
            "activity_value_template",
        )
        self.offer_words(_MOWER, [each for each in _MOWER if self.can(f"{each}_command")],
                          lambda self, word: self.publish(f"{word}_command", word))  # fmt: skip
