"""The limits that a client meets, whoever it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Counts, bytes and seconds. `body_bytes` comes from the configuration; the others are the contract's."""

    connections: int = 1000
    connections_per_peer: int = 600
    body_bytes: int = 1 << 20
    head_bytes: int = 8192
    head_secs: float = 10.0
    body_secs: float = 30.0
    idle_secs: float = 60.0
    message_bytes: int = 64 * 1024
    ping_secs: float = 20.0
    stall_secs: float = 30.0
    stop_secs: float = 3.0
