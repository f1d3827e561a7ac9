"""The names and entities that a template can use."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from appliance.cli.homeassistant.entities import Entities
from appliance.cli.homeassistant.not_translated import NotTranslated


class Scope(Struct, frozen=True, kw_only=True):
    """The names that a template can use, with their Lua expressions, and the possible entities of the trigger.

    `state_entity` is the entity for `state` in a numeric template. `has_event` is false for scripts, because they
    have no event.
    """

    entities: Entities
    names: Mapping[str, str] = {}
    trigger_entities: tuple[str, ...] = ()
    state_entity: str | None = None
    has_event: bool = True

    def variable(self, name: str) -> str:
        """Return the Lua expression for a variable. Raise `NotTranslated` if the variable is unknown."""
        if name not in self.names:
            raise NotTranslated(f"the template uses the unknown name {name}")
        return self.names[name]
