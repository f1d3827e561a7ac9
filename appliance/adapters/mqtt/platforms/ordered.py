"""Base of vacuum cleaner and lawn mower, whose commands and states are different words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from appliance.adapters.mqtt.messages import Outgoing
from appliance.adapters.mqtt.platforms.entity import Entity, Intent
from appliance.home.commands import Command
from appliance.home.values import Value


def shows_one_of(attribute: str, states: tuple[str, ...]) -> Callable[[Entity], bool]:
    return lambda entity: entity.attributes.get(attribute) in states


class Ordered(Entity):
    """An entity with different words for states and commands. Commands set its custom attribute."""

    def offer_orders(
        self, orders: Mapping[str, tuple[str, ...]], taken: list[Value], message: Callable[[str], Outgoing]
    ) -> None:
        """Offer the supported commands.

        A command is complete when one of its states is shown. Without states, it is complete when it is sent.
        """

        def write(command: Command) -> Intent:
            order = str(command.value)
            sent, states = (message(order),), orders[order]
            if not states or not self.readers:
                return Intent(messages=sent)
            begins = shows_one_of(self.custom, states)
            return Intent(messages=sent, shows={self.custom: states[0]}, begins=begins, fails=("error",))

        if taken:
            self.offer(self.custom, ("set",), write, type="enum", values=taken)
