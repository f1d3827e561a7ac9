"""Access: the keyring, which makes keys, and the authenticator, which checks them, over one store."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from appliance.api.auth import Authenticator
from appliance.api.keyring import Keyring
from appliance.clock import Clock
from appliance.store.stored_keys import Keys


class Access(Struct, frozen=True, kw_only=True):
    """The keys of one store. Both parts hash on one thread, so that they need the memory of one hash."""

    authenticator: Authenticator
    keyring: Keyring

    @staticmethod
    def over(
        keys: Keys,
        clock: Clock,
        *,
        master_key: str | None = None,
        master_source: str = "the configuration",
        first_used: Callable[[str], None] | None = None,
        on_master_reset: Callable[[], None] = lambda: None,
    ) -> Access:
        """The access by these keys, and by a configured master key in place of the box's own.

        `first_used` is called with the id of a key when it is first verified, `on_master_reset` when the box's own
        master key was replaced; `master_source` says where a configured one is.
        """
        authenticator = Authenticator(keys.find, master_key=master_key, first_used=first_used)
        keyring = Keyring(
            keys,
            authenticator.hasher,
            clock,
            master_source=None if master_key is None else master_source,
            on_master_reset=on_master_reset,
        )
        return Access(authenticator=authenticator, keyring=keyring)

    def close(self) -> None:
        """Shut the hashing thread down."""
        self.authenticator.close()
