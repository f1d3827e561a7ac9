"""Base of components with different words for commands and states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from appliance.adapters.mqtt.messages import Outgoing
from appliance.adapters.mqtt.platforms.entity import Entity, shows_one_of
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.home.commands import Command
from appliance.home.values import Value


class Ordered(Entity):
    """An entity with different words for states and commands. Commands set the entity's custom attribute."""

    def offer_orders(
        self, orders: Mapping[str, tuple[str, ...]], taken: list[Value], message: Callable[[Any, str], Outgoing]
    ) -> None:
        """Offer the supported commands.

        A command is complete when the device reports one of its states. If the device does not report states, a
        command is complete when it is sent.
        """

        def write(entity: Entity, command: Command) -> Intent:
            order = str(command.value)
            sent, states = (message(entity, order),), orders[order]
            if not states or not entity.readers:
                return Intent(messages=sent)
            begins = shows_one_of(entity.custom_key, states)
            return Intent(messages=sent, shows={entity.custom_key: states[0]}, begins=begins, fails=("error",))

        if taken:
            self.add_offer(self.custom_key, ("set",), write, type="enum", values=taken)
