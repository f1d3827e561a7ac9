"""Runs: whether an automation that was triggered runs, what becomes of it, and, where it does not run, why not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from appliance.automations import policy
from appliance.automations.conditions import check_all
from appliance.automations.definition import Definition
from appliance.automations.homes import Home
from appliance.automations.states import State, States
from appliance.automations.verdict import Verdict, refused
from appliance.history import Period, RunEntry, RunStatus
from appliance.home.values import Value
from appliance.lua.catalog import Asset
from appliance.lua.executions import Ending, Execution, Job, entry_of

log = logging.getLogger("automations")

DISABLED = refused("disabled: the automation is switched off")

Event = Mapping[str, Value]


class Executes(Protocol):
    """What runs the jobs: `Executions`, or a rehearsal of it."""

    async def __aexit__(self, *_: object) -> None:
        """End what runs, and let nothing begin any more."""

    def submit(self, job: Job) -> Execution:
        """Let the job run, wait for its turn, or be dropped."""

    def give_up(self) -> None:
        """End what runs and waits; who waits for an ending learns of it."""

    def figures(self) -> dict[str, Any]:
        """How many run and wait, and how those before them ended."""


MakesExecutions = Callable[[Callable[[Job, Ending], None]], Executes]
"""Makes what runs jobs, given whom to tell how each ended."""


class Keeps(Protocol):
    """What keeps the entries: the history, or a printer of them."""

    def add(self, entry: RunEntry) -> None:
        """Take an entry."""

    def list_runs(self, subject: str, period: Period) -> list[RunEntry]:
        """The entries of an automation in the period, the newest first."""


class Runs:
    """Decides and runs."""

    def __init__(
        self, home: Home, states: States, history: Keeps, executes: MakesExecutions
    ) -> None:
        self._registry = home.registry
        self._clock = home.clock
        self._trust = home.trust
        self._states = states
        self._history = history
        self._executions = executes(self._note)

    async def __aenter__(self) -> Runs:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._executions.__aexit__()

    def consider(self, asset: Asset[Definition], event: Event) -> None:
        """Run the automation that the event has triggered, if it is on, may run, and did not just do so."""
        definition = asset.definition
        verdict = self._judge(definition, self._states.of(definition.id), event)
        if verdict.holds:
            self._executions.submit(_job(asset, event))
        else:
            self._note(_job(asset, event), self._skipped(verdict))

    async def run_by_hand(self, asset: Asset[Definition], event: Event) -> Ending:
        """Run it because somebody says so: if its conditions hold, whatever its mode, policy and switch say."""
        job = _job(asset, event, by_hand=True)
        verdict = self._check(asset.definition)
        if verdict.holds:
            return await asyncio.shield(self._executions.submit(job).ended)
        ending = self._skipped(verdict)
        self._note(job, ending)
        return ending

    def give_up(self) -> None:
        """End every execution, since the hub stops; who waits for one is told so."""
        self._executions.give_up()

    def list_runs(self, id_: str, period: Period) -> list[RunEntry]:
        """What became of the automation's triggers in the period, the newest first."""
        return self._history.list_runs(id_, period)

    def figures(self) -> dict[str, Any]:
        """How many run and wait, and how those before them ended."""
        return self._executions.figures()

    def _check(self, definition: Definition) -> Verdict:
        instant = self._clock.now() if self._trust.is_given() else None
        return check_all(definition.conditions, self._registry, instant)

    def _judge(self, definition: Definition, state: State, event: Event) -> Verdict:
        if not state.is_enabled:
            return DISABLED
        verdict = self._check(definition)
        if not verdict.holds:
            return verdict
        decision = policy.decide(definition.policy, state.memory, event, self._clock.now())
        self._states.remember(definition.id, decision.memory)
        return decision.verdict

    def _skipped(self, verdict: Verdict) -> Ending:
        return Ending(
            executed_at=self._clock.now(), status=RunStatus.SKIPPED, error=verdict.reason, results=(), duration_ms=0
        )

    def _note(self, job: Job, ending: Ending) -> None:
        """Note how a run ended, or that there was none."""
        state = self._states.of(job.id)
        if ending.status is not RunStatus.SKIPPED:
            if not job.by_hand:
                self._states.remember(job.id, self._after(state.memory, job, ending))
            if ending.status is not RunStatus.DROPPED:
                state.last_run, state.last_error = ending.executed_at, ending.error
        self._tell(job, ending)
        self._history.add(entry_of(job, ending))

    def _after(self, memory: policy.Memory, job: Job, ending: Ending) -> policy.Memory:
        if ending.status is RunStatus.OK:
            return policy.succeeded(memory, self._clock.now())
        if ending.status is RunStatus.DROPPED:
            return policy.never_began(memory, job.event or {})
        return policy.failed(memory)

    def _tell(self, job: Job, ending: Ending) -> None:
        if ending.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
            log.warning("automation '%s' failed: %s", job.id, ending.error)
        else:
            log.debug("automation '%s': %s", job.id, ending.error or ending.status)


def _job(asset: Asset[Definition], event: Event, *, by_hand: bool = False) -> Job:
    definition = asset.definition
    return Job(
        id=definition.id,
        label=f"automation:{definition.id}",
        source=asset.source,
        mode=definition.mode,
        event=event,
        by_hand=by_hand,
    )
