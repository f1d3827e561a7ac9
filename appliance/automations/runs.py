"""Runs: whether an automation that was triggered runs, what becomes of it, and, where it does not run, why not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from appliance.automations import policy
from appliance.automations.active import ActiveTrigger
from appliance.automations.conditions import check_all
from appliance.automations.definition import AutomationDefinition
from appliance.automations.device_triggers import Match
from appliance.automations.environment import Environment
from appliance.automations.states import State, States
from appliance.automations.verdict import Verdict, refused
from appliance.history.execution_history import RunEntry, RunStatus
from appliance.history.period import Period
from appliance.home.values import Value
from appliance.lua.executor import Execution, ExecutionRequest, ExecutionResult, history_entry
from appliance.lua.lua_catalog import Asset
from appliance.lua.modes import Decision

log = logging.getLogger("automations")

DISABLED = refused("disabled: the automation is switched off")

Event = Mapping[str, Value]


class AnyExecutor(Protocol):
    """What runs the requests: `Executor`, or a rehearsal of it."""

    async def __aexit__(self, *_: object) -> None:
        """End what runs, and let nothing begin any more."""

    def submit(self, request: ExecutionRequest) -> Execution:
        """Let the request run, wait for its turn, or be dropped."""

    def abort_all(self) -> None:
        """End what runs and waits; who waits for an result learns of it."""

    def cancel(self, id_: str) -> int:
        """End what runs and waits of this id at once; how many those were."""

    def skip_waiting(self, id_: str, because: str) -> None:
        """Let nothing that waits for its turn run any more."""

    def figures(self) -> dict[str, Any]:
        """How many run and wait, and how those before them ended."""


ExecutorFactory = Callable[[Callable[[ExecutionRequest, ExecutionResult], None]], AnyExecutor]
"""Makes what runs requests, given whom to tell how each ended."""


class HistoryWriter(Protocol):
    """What keeps the entries: the history, or a printer of them."""

    def add(self, entry: RunEntry) -> None:
        """Take an entry."""

    def list_runs(self, subject: str, period: Period) -> list[RunEntry]:
        """The entries of an automation in the period, the newest first."""


class AutomationExecutor:
    """Decides and runs."""

    def __init__(
        self, environment: Environment, states: States, history: HistoryWriter, new_executor: ExecutorFactory
    ) -> None:
        self._clock = environment.clock
        self._trust = environment.trust
        self._states = states
        self._history = history
        self._brake = environment.brake
        self._environment = environment
        self._executor = new_executor(self._note)

    async def __aenter__(self) -> AutomationExecutor:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._executor.__aexit__()

    def fire(self, active: ActiveTrigger, match: Match) -> None:
        """Run the automation whose trigger has matched, if it is on, may run, and did not just do so."""
        asset, definition = active.asset, active.asset.definition
        event = match.event if active.trigger.id is None else {**match.event, "trigger_id": active.trigger.id}
        verdict = self._check_conditions(definition, self._states.of(definition.id), event)
        request = _request(asset, event, verdict, after=match.after)
        if not verdict.holds:
            self._note(request, self._record_skipped(request, verdict))
        elif self._executor.submit(request).decision is not Decision.DROP:
            self._brake.note_run(definition.id, event)

    async def run_by_hand(self, asset: Asset[AutomationDefinition], event: Event) -> ExecutionResult:
        """Run it because somebody says so: if its conditions hold, whatever its mode, policy and switch say."""
        verdict = self._check(asset.definition)
        request = _request(asset, event, verdict, by_hand=True)
        if verdict.holds:
            return await asyncio.shield(self._executor.submit(request).ended)
        result = self._record_skipped(request, verdict)
        self._note(request, result)
        return result

    def cancel(self, id_: str) -> int:
        """End what runs and waits of the automation at once; how many those were."""
        return self._executor.cancel(id_)

    def skip_waiting(self, id_: str) -> None:
        """Let nothing of the automation, which was switched off, begin that waits for its turn."""
        self._executor.skip_waiting(id_, DISABLED.reason)

    def abort_all(self) -> None:
        """End every execution, since the hub stops; who waits for one is told so."""
        self._executor.abort_all()

    def list_runs(self, id_: str, period: Period) -> list[RunEntry]:
        """What became of the automation's triggers in the period, the newest first."""
        return self._history.list_runs(id_, period)

    def figures(self) -> dict[str, Any]:
        """How many run and wait, and how those before them ended."""
        return self._executor.figures()

    def paused_secs(self, id_: str) -> float | None:
        """For how many seconds more the brake pauses the automation; None where it does not."""
        return self._brake.paused_secs(id_)

    def _check(self, definition: AutomationDefinition) -> Verdict:
        instant = self._clock.now() if self._trust.is_trusted() else None
        return check_all(definition.conditions, self._environment, instant)

    def _check_conditions(self, definition: AutomationDefinition, state: State, event: Event) -> Verdict:
        if not state.is_enabled:
            return DISABLED
        if (reason := self._brake.refusal(definition.id, event)) is not None:
            return refused(reason)
        verdict = self._check(definition)
        if not verdict.holds:
            return verdict
        decision = policy.decide(definition.policy, state.memory, event, self._clock.now())
        self._states.remember(definition.id, decision.memory)
        return decision.verdict

    def _record_skipped(self, request: ExecutionRequest, verdict: Verdict) -> ExecutionResult:
        return ExecutionResult(
            executed_at=self._clock.now(),
            status=RunStatus.SKIPPED,
            error=verdict.reason,
            results=(),
            duration_ms=0,
            trace=request.steps,
        )

    def _note(self, request: ExecutionRequest, result: ExecutionResult) -> None:
        """Note how a run ended, or that there was none."""
        state = self._states.of(request.id)
        if result.status is not RunStatus.SKIPPED:
            if not request.by_hand:
                self._states.remember(request.id, self._after(state.memory, request, result))
            if result.status is not RunStatus.DROPPED:
                nothing = next(iter(result.warnings), None)
                state.last_run, state.last_error = result.executed_at, result.error or nothing
        self._log_result(request, result)
        self._history.add(history_entry(request, result))

    def _after(self, memory: policy.Memory, request: ExecutionRequest, result: ExecutionResult) -> policy.Memory:
        if result.status is RunStatus.OK:
            return policy.succeeded(memory, self._clock.now())
        if result.status is RunStatus.DROPPED:
            return policy.never_began(memory, request.event or {})
        return policy.failed(memory)

    def _log_result(self, request: ExecutionRequest, result: ExecutionResult) -> None:
        if result.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
            log.warning("automation '%s' failed: %s", request.id, result.error)
        else:
            log.debug("automation '%s': %s", request.id, result.error or result.status)
        for warning in result.warnings:
            log.warning("automation '%s': a command came to nothing: %s", request.id, warning)


def _steps(definition: AutomationDefinition, verdict: Verdict) -> tuple[Mapping[str, Any], ...]:
    """What the trace tells of the conditions: those that hold, and the one that does not."""
    if not verdict.holds and not verdict.branch:
        return ()
    failed = None if verdict.holds else int(verdict.branch.partition(".")[0])
    steps: list[Mapping[str, Any]] = []
    for number, condition in enumerate(definition.conditions[:failed], 1):
        told = {"at_ms": 0, "step": "condition", "number": number, "type": condition.type}
        is_failed = number == failed
        steps.append({**told, "holds": not is_failed, "reason": verdict.reason if is_failed else None})
    return tuple(steps)


def _request(
    asset: Asset[AutomationDefinition],
    event: Event,
    verdict: Verdict,
    *,
    by_hand: bool = False,
    after: asyncio.Event | None = None,
) -> ExecutionRequest:
    definition = asset.definition
    return ExecutionRequest(
        id=definition.id,
        label=f"automation:{definition.id}",
        source=asset.source,
        mode=definition.mode,
        event=event,
        by_hand=by_hand,
        after=after,
        steps=_steps(definition, verdict),
    )
