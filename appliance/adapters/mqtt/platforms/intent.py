"""The commands that an entity offers, and the messages of one command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from appliance.adapters.mqtt.messages import Outgoing
from appliance.adapters.mqtt.platforms.payloads import Update
from appliance.home.commands import Command
from appliance.home.values import Value


class Intent(Struct, frozen=True, kw_only=True):
    """The messages of a command, and the attributes that confirm it.

    If `shows` is missing, the command is complete when it is sent. If `begins` is given, the command is complete when
    `begins` returns true for the entity. If the entity was announced again, `begins` gets the new entity object.
    `fails` contains the states of a failed command. `step` is the step of an expected number.
    """

    messages: tuple[Outgoing, ...]
    shows: Update = field(default_factory=dict)
    begins: Callable[[Any], bool] | None = None
    fails: tuple[str, ...] = ()
    step: float | None = None


class Offer(Struct, frozen=True, kw_only=True, gc=False):
    """The actions for one attribute, the function that makes the messages of a command, and the schema of the values.

    `write` gets the entity as an argument. Apart from that, `write` must not refer to the entity (see
    `PayloadParser`). `write` raises `Invalid` or `Unsupported`.
    """

    actions: tuple[str, ...]
    write: Callable[[Any, Command], Intent]
    schema: Mapping[str, Value] = field(default_factory=dict)
