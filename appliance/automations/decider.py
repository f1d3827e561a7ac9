"""Decides whether a triggered automation runs, and records why an automation does not run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from appliance.automations.active_triggers import ActiveTrigger
from appliance.automations.automation_states import AutomationState, AutomationStates, Run
from appliance.automations.conditions.combine import Refusal, check_conditions
from appliance.automations.definition import AutomationDefinition
from appliance.automations.environment import Environment
from appliance.automations.policy import NEVER_BEGAN, PolicyState, after, apply_policy
from appliance.automations.triggers.base import Match
from appliance.history.execution_history import ExecutionEntry
from appliance.home.values import Value
from appliance.lua.files.catalog import LoadedFile
from appliance.lua.running.executor import ExecutionRequest, Executor
from appliance.lua.running.modes import Decision

DISABLED = Refusal("disabled: the automation is switched off")

TriggerEvent = Mapping[str, Value]


class Decider:
    """Decides whether a trigger starts an execution, and records the execution's result."""

    def __init__(self, environment: Environment, states: AutomationStates, executor: Executor) -> None:
        self._clock = environment.clock
        self._trust = environment.clock_watch.trust
        self._steps = environment.clock_watch.steps
        self._steps.listen(self._correct_times)
        self._decided: dict[str, None] = {}
        self._states = states
        self._brake = environment.brake
        self._environment = environment
        self.executor = executor

    def fire(self, active: ActiveTrigger, match: Match) -> None:
        """Run the trigger's automation if its switch, brake, conditions, and policy allow it. If one of these
        prevents the run, record the reason."""
        file, definition = active.file, active.file.definition
        event = match.event if active.trigger.id is None else {**match.event, "trigger_id": active.trigger.id}
        refusal = self._apply_rules(definition, self._states.of(definition.id), event, match.subject)
        request = _request(file, event, refusal, is_alarm=refusal is None and self._is_alarm(match.subject))
        if refusal is not None:
            self.executor.skip(request, refusal.reason)
        elif self.executor.submit(request, self._on_end).decision is not Decision.DROP:
            self._brake.note_execution(definition.id, match.subject)

    async def run_by_hand(
        self, file: LoadedFile[AutomationDefinition], event: TriggerEvent, client: str = ""
    ) -> ExecutionEntry:
        """Run the automation if its conditions hold, and wait until it ends. Ignore the automation's mode, policy,
        and switch."""
        refusal = self._check_conditions(file.definition)
        request = _request(file, event, refusal, by_hand=True, client=client)
        if refusal is None:
            execution = self.executor.submit(request, self._on_end)
            self._brake.note_execution(file.definition.id, ())  # the effects of this run have no other cause
            return await execution.result()
        return self.executor.skip(request, refusal.reason)

    def _is_alarm(self, subject: tuple[str, ...]) -> bool:
        """Return whether the subject is an alarm attribute of a device."""
        match subject:
            case "device", device_id, attribute:
                device = self._environment.registry.find_device(device_id)
                return device is not None and device.is_alarm(attribute)
        return False

    def _check_conditions(self, definition: AutomationDefinition) -> Refusal | None:
        if not definition.conditions:
            return None
        instant = self._clock.now() if self._trust.is_trusted() else None
        return check_conditions(definition.conditions, self._environment, instant)

    def _apply_rules(
        self, definition: AutomationDefinition, state: AutomationState, event: TriggerEvent, subject: tuple[str, ...]
    ) -> Refusal | None:
        """Apply the switch, the brake, the conditions, and the policy. The brake may begin a pause, and the policy
        stores its decision."""
        if not state.is_enabled:
            return DISABLED
        if (reason := self._brake.apply(definition.id, subject)) is not None:
            return Refusal(reason)
        if (refusal := self._check_conditions(definition)) is not None:
            return refusal
        if not definition.policy.has_limits:
            self._states.store_policy_state(definition.id, PolicyState())
            return None
        now = self._steps.now()
        self._decided[definition.id] = None
        decision = apply_policy(definition.policy, state.policy_state, event, now)
        self._states.store_policy_state(definition.id, decision.state)
        return None if decision.refusal is None else Refusal(decision.refusal)

    def _correct_times(self, step: timedelta) -> None:
        """After the clock was set, correct the times that this run of the hub recorded for decisions and for ends of
        executions."""
        for id_ in self._decided:
            policy_state = self._states.of(id_).policy_state
            ended = None if policy_state.ended_at is None else self._steps.redate(policy_state.ended_at, step)
            decided = {key: self._steps.redate(at, step) for key, at in policy_state.decided.items()}
            self._states.store_policy_state(id_, replace(policy_state, ended_at=ended, decided=decided))

    def _on_end(self, request: ExecutionRequest, result: ExecutionEntry) -> None:
        state = self._states.of(request.id)
        now = self._steps.now()
        if not request.by_hand:
            policy_state = after(state.policy_state, result.status, request.event or {}, now)
            self._states.store_policy_state(request.id, policy_state)
        if result.status not in NEVER_BEGAN:
            error = result.error or next(iter(result.warnings), None)
            run = Run(executed_at=result.executed_at, status=result.status, error=error)
            self._states.store_run(request.id, run, is_trusted=self._trust.is_trusted())


def _trace_conditions(definition: AutomationDefinition, refusal: Refusal | None) -> tuple[Mapping[str, Any], ...]:
    """Return a trace step for each condition, up to and including the first condition that does not hold."""
    failed = None if refusal is None else refusal.condition
    if refusal is not None and failed is None:
        return ()
    steps: list[Mapping[str, Any]] = []
    for number, condition in enumerate(definition.conditions[:failed], 1):
        step = {"at_ms": 0, "step": "condition", "number": number, "type": condition.type}
        reason = refusal.reason if refusal is not None and number == failed else None
        steps.append({**step, "holds": reason is None, "reason": reason})
    return tuple(steps)


def _request(
    file: LoadedFile[AutomationDefinition],
    event: TriggerEvent,
    refusal: Refusal | None,
    *,
    by_hand: bool = False,
    is_alarm: bool = False,
    client: str = "",
) -> ExecutionRequest:
    definition = file.definition
    return ExecutionRequest(
        kind="automation",
        id=definition.id,
        name=definition.name,
        source=file.source,
        mode=definition.mode,
        event=event,
        by_hand=by_hand,
        is_waited_for=by_hand,
        is_alarm=is_alarm,
        client=client,
        steps=_trace_conditions(definition, refusal),
    )
