"""An automation's policy prevents a run that begins too soon after the previous run, and a second run for the same
event.

All functions are pure, and return the policy state to store. Instants are wall-clock times. Stored instants in the
future are treated as now, so that a clock that was set back never extends a cooldown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct, field
from msgspec.structs import replace

from appliance.automations.stored_hashes import fingerprint
from appliance.history.execution_history import ExecutionStatus
from appliance.home.values import Value

MAX_REMEMBERED = 1000
"""Maximum number of stored events for deduplication. The oldest are deleted first."""


NEVER_BEGAN = (ExecutionStatus.SKIPPED, ExecutionStatus.DROPPED)


class Policy(Struct, frozen=True, kw_only=True):
    """The `state` table of a definition. If a limit is 0, it is disabled."""

    cooldown_secs: float = 0
    dedupe_window_secs: float = 0
    resumable_schedule: bool = False

    @property
    def has_limits(self) -> bool:
        return bool(self.cooldown_secs or self.dedupe_window_secs)


class PolicyState(Struct, frozen=True, kw_only=True):
    """The stored state of a policy.

    - `is_running`: whether an execution is running. A running execution prevents further runs in the same way as a
      cooldown.
    - `ended_at`: the end of the last successful run, or None if there is no cooldown.
    - `decided`: the decision time of each event by fingerprint, oldest first.
    """

    is_running: bool = False
    ended_at: datetime | None = None
    decided: Mapping[str, datetime] = field(default_factory=dict)


class PolicyDecision(Struct, frozen=True):
    """The reason not to run, or None if the automation may run. In any case, `state` must be stored."""

    refusal: str | None
    state: PolicyState


def apply_policy(policy: Policy, state: PolicyState, event: Mapping[str, Value], now: datetime) -> PolicyDecision:
    """Return whether the automation may run for the event now. If it may run, the returned `state` includes the
    event and the beginning of the cooldown."""
    state = _without_expired(policy, state, now)
    reason = _cooldown(policy, state, now)
    if reason is not None:
        return PolicyDecision(reason, state)
    if not policy.dedupe_window_secs:
        return PolicyDecision(None, _begun(policy, state))
    key = fingerprint(event)
    if key in state.decided:
        return PolicyDecision(_duplicate(policy, state.decided[key], now), state)
    kept = dict(list(state.decided.items())[-(MAX_REMEMBERED - 1) :])
    return PolicyDecision(None, replace(_begun(policy, state), decided=kept | {key: now}))


def after(state: PolicyState, status: ExecutionStatus, event: Mapping[str, Value], now: datetime) -> PolicyState:
    """Return the policy's state after the execution for the event has ended with this status.

    If the execution succeeded, the cooldown begins now. If the execution failed, was cancelled, or timed out, no
    cooldown applies. A dropped execution also removes the event, so that the same event may run the automation again.
    """
    if status is ExecutionStatus.OK:
        return PolicyState(ended_at=now if state.is_running else state.ended_at, decided=state.decided)
    key = fingerprint(event) if status in NEVER_BEGAN else None
    decided = {each: at for each, at in state.decided.items() if each != key}
    return replace(state, is_running=False, decided=decided)


def _begun(policy: Policy, state: PolicyState) -> PolicyState:
    return replace(state, is_running=True, ended_at=None) if policy.cooldown_secs else state


def _without_expired(policy: Policy, state: PolicyState, now: datetime) -> PolicyState:
    """Remove expired parts from the state. Instants in the future become now."""
    ended = _unless_expired(state.ended_at, policy.cooldown_secs, now)
    instants = ((key, _unless_expired(at, policy.dedupe_window_secs, now)) for key, at in state.decided.items())
    decided = {key: at for key, at in instants if at is not None}
    return replace(state, ended_at=ended, decided=decided, is_running=state.is_running and policy.cooldown_secs > 0)


def _unless_expired(at: datetime | None, secs: float, now: datetime) -> datetime | None:
    """Return None if the instant is at least `secs` seconds ago. Replace an instant in the future with now."""
    if at is None or now - at >= timedelta(seconds=secs):
        return None
    return min(at, now)


def _cooldown(policy: Policy, state: PolicyState, now: datetime) -> str | None:
    if state.is_running:
        return f"cooldown: a run is in progress, and then a cooldown of {policy.cooldown_secs:g} s follows"
    if state.ended_at is None:
        return None
    return f"cooldown: {_seconds_left(state.ended_at, policy.cooldown_secs, now)} s more"


def _duplicate(policy: Policy, at: datetime, now: datetime) -> str:
    ago = math.floor((now - at).total_seconds())
    more = _seconds_left(at, policy.dedupe_window_secs, now)
    return f"duplicate: the same event came {ago} s ago; repetitions are ignored for {more} s more"


def _seconds_left(since: datetime, secs: float, now: datetime) -> int:
    return math.ceil(secs - (now - since).total_seconds())
