"""Logs wrong keys."""

from __future__ import annotations

import asyncio
import logging

WRONG_KEY_LOG_SECS = 3600.0
"""Wrong keys of one client are logged at most once in this time, because a client with a revoked key may retry every
second."""

MAX_KEPT_WRONG_PEERS = 256
"""Maximum number of clients whose wrong keys are remembered. When this number is reached, all clients are
forgotten."""

log = logging.getLogger("api")


class WrongKeyLog:
    """Logs the wrong keys of each client at most once per `WRONG_KEY_LOG_SECS`."""

    def __init__(self) -> None:
        self._logged_at: dict[str, float] = {}

    def note(self, peer: str) -> None:
        """Log that a request of this client had a wrong key."""
        now = asyncio.get_running_loop().time()
        if now - self._logged_at.get(peer, -WRONG_KEY_LOG_SECS) < WRONG_KEY_LOG_SECS:
            return
        if len(self._logged_at) >= MAX_KEPT_WRONG_PEERS:
            self._logged_at.clear()
        self._logged_at[peer] = now
        log.warning(
            "refused a request from %s: its key is wrong or revoked; `lares key list` shows the valid keys", peer
        )
