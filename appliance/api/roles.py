"""The roles of keys, and the check whether a role permits a request."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from appliance.errors import Forbidden
from appliance.store.stored_keys import Key


class Role(StrEnum):
    """The permissions of a key."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    AUTOMATION = "automation"
    HOOK = "hook"


REACH: Mapping[Role, frozenset[Role]] = {
    Role.READ: frozenset({Role.READ}),
    Role.WRITE: frozenset({Role.READ, Role.WRITE}),
    Role.ADMIN: frozenset(Role),
    Role.AUTOMATION: frozenset(Role),
    Role.HOOK: frozenset({Role.HOOK}),
}
"""Maps the role of a key to the roles of the routes that the key may use."""


class Principal(Struct, frozen=True, kw_only=True):
    """The sender of an authorized request.

    - `key`: the stored key; None for a configured master key.
    - `is_on_box`: whether the request came over the control socket from root or the hub's user. Requests over the
      control socket need no key.
    """

    key_id: str
    role: Role
    key: Key | None = None
    is_on_box: bool = False

    def require_role(self, role: Role, hook: str | None = None) -> None:
        """Raise `Forbidden` if a route with this role is not permitted to this principal, or if the principal may
        not call this hook."""
        is_other_hook = self.role is Role.HOOK and (self.key is None or self.key.hook != hook)
        if role not in REACH[self.role] or is_other_hook:
            raise Forbidden("insufficient permissions")


ON_BOX = Principal(key_id="control socket", role=Role.ADMIN, is_on_box=True)
"""The principal of requests over the control socket."""
