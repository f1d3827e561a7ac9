"""Base of components whose commands are words that differ from the words of their states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from appliance.adapters.mqtt.messages import Outgoing
from appliance.adapters.mqtt.platforms.entity import Entity, shows_one_of
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.home.commands import Command
from appliance.home.values import Value


class CommandWords(Entity):
    """An entity whose custom attribute reports a state, and accepts the words of commands."""

    def offer_words(
        self, states: Mapping[str, tuple[str, ...]], offered: list[Value], message: Callable[[Any, str], Outgoing]
    ) -> None:
        """Offer the words in `offered`. `states` maps each word to the states that confirm the command.

        A command is complete when the device reports one of these states. If the device does not report states, a
        command is complete when it is sent.
        """

        def write(entity: Entity, command: Command) -> Intent:
            word = str(command.value)
            sent, expected = (message(entity, word),), states[word]
            if not expected or not entity.readers:
                return Intent(messages=sent)
            begins = shows_one_of(entity.custom_key, expected)
            return Intent(messages=sent, shows={entity.custom_key: expected[0]}, begins=begins, fails=("error",))

        if offered:
            self.add_offer(self.custom_key, ("set",), write, type="enum", values=offered)
