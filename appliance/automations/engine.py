"""The engine finds the triggers that match an event, and fires time triggers."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from appliance.automations.active_triggers import ActiveTrigger
from appliance.automations.automation_states import AutomationStates, StoredWait, wait_record_key
from appliance.automations.change_times import Comparison
from appliance.automations.decider import Decider
from appliance.automations.definition import AutomationDefinition
from appliance.automations.due_times import DueTimes
from appliance.automations.environment import Environment
from appliance.automations.old_formats import convert_waits
from appliance.automations.trigger_index import TriggerIndex
from appliance.automations.trigger_schedules import TriggerSchedules
from appliance.automations.triggers.base import EventTrigger, TimedTrigger
from appliance.automations.triggers.device import DeviceTrigger
from appliance.automations.triggers.event import SUBJECTS
from appliance.automations.waits import Waits
from appliance.event_loop import in_steps
from appliance.home import events
from appliance.home.model import Device, changed_attributes
from appliance.lua.files.catalog import Catalog, LoadedFile
from appliance.tasks import Tasks

MAX_DISPATCHED_AT_ONCE = 32
"""Maximum number of triggers that one event starts at once. If an event may match more triggers, the triggers run one
after another, and other tasks run in between."""

MAX_UNDISPATCHED = 1_000_000
"""Maximum number of matches that wait for their dispatch, about 20 MB. An event counts as `MATCHES_OF_EVENT` further
matches. Events beyond this number start only automations for alarms."""

MATCHES_OF_EVENT = 100
"""Matches that need as much memory as an event."""

log = logging.getLogger("automations")

_Undispatched = deque[tuple[Iterator[ActiveTrigger], events.Event, int]]
"""The events to dispatch, with their remaining triggers, and the number of their matches as in `MAX_UNDISPATCHED`. An
entry per trigger would need much memory."""

TOO_MANY_EVENTS = (
    "events arrive faster than their automations can be started, so some events start only automations for alarms; "
    "the largest part of the work is for %s: use fewer triggers for it, or let it report less often; "
    'triggers with device_id = "*" are for every device'
)

_KINDS: tuple[type[events.Event], ...] = (
    events.AttributesFirstReported,
    events.DeviceStateChanged,
    events.DoubtfulValuesRepeated,
    events.DeviceEvent,
    events.DeviceRemoved,
    *SUBJECTS,
)


class Engine:
    """Activates the triggers of a catalog's automations when `arm` is called. An index by subject finds the triggers
    that an event may match."""

    def __init__(
        self,
        catalog: Catalog[AutomationDefinition],
        decider: Decider,
        states: AutomationStates,
        environment: Environment,
    ) -> None:
        self.catalog = catalog
        self._decider = decider
        self._environment = environment
        self._states = states
        self.schedules = TriggerSchedules(states, environment, decider.fire)
        self._waits = Waits(states, environment, decider.fire)
        self._change_times = environment.change_times
        self._registry = environment.registry
        self._bus = environment.bus
        self._listening = ExitStack()
        self._active: dict[str, list[ActiveTrigger]] = {}
        self.due_times = DueTimes(self._active, states, environment)
        self._index = TriggerIndex(self._registry)
        self._files: dict[str, LoadedFile[AutomationDefinition]] = {}
        self.is_stopping = False
        self._is_armed = False
        self._first_reports: dict[str, frozenset[str]] = {}
        self._arming = asyncio.Lock()
        self._undispatched: _Undispatched = deque()
        self._undispatched_alarms: _Undispatched = deque()
        self._undispatched_matches = 0
        self._drops_events = False
        self._tasks = Tasks()

    async def __aenter__(self) -> Engine:
        await convert_waits(self._states, self._environment.storage, self.catalog.list_definitions())
        self._switch_all()
        self._listening.callback(self._bus.listen(self._on_event, *_KINDS))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.disarm()
        await self._tasks.__aexit__()
        await self._waits.aclose()

    def disarm(self) -> None:
        """Deactivate all triggers, even after later reloads. Running executions continue."""
        self.is_stopping = True
        self._waits.disarm()
        self._listening.close()
        for active in self.list_active():
            self._stop(active)

    def has_timer_listener(self, name: str) -> bool:
        return any(self._states.of(each.id).is_enabled for each in self._index.of_subject("timer", name))

    def has_hook_listener(self, hook: str) -> bool:
        """Return whether any automation has a trigger for the hook, including automations that are off."""
        return bool(self._index.of_subject("hook", hook))

    def list_active(self) -> list[ActiveTrigger]:
        return [active for each in self._active.values() for active in each]

    def preview_waits(self, devices: Sequence[Device]) -> Mapping[str, Any]:
        """Return the records of waits for storage, with the waits that begin when the devices have changed to these
        states.

        If the devices and these records are stored together, a power cut loses no wait. If there are too many devices
        or waits for one turn of the event loop, the waits are missing, and `Waits.follow` stores them later.
        """
        if len(devices) > MAX_DISPATCHED_AT_ONCE:
            return {}
        changes = [
            _change(before, device)
            for device in devices
            if (before := self._registry.find_device(device.id)) is not None
        ]
        found: list[tuple[ActiveTrigger, events.DeviceStateChanged]] = []
        for event in changes:
            triggers = self._index.of(event, self._waits)
            if len(found) + len(triggers) > MAX_DISPATCHED_AT_ONCE:
                return {}
            found += [(active, event) for active in triggers]
        records: dict[str, dict[str, StoredWait]] = {}
        for active, event in found:
            trigger, device_id = _waiting_trigger(active), event.device.id
            if trigger is None or (begun := self._waits.preview(active, trigger, event)) is None:
                continue
            known = self._states.of(active.id).waits.get(device_id, {})
            records.setdefault(wait_record_key(active.id, device_id), {**known})[active.key] = begun
        return records

    async def arm(self) -> None:
        """Activate the triggers of new and changed files, and stop the triggers of deleted files, unless the hub is
        stopping. Unchanged triggers keep their waits and schedules. If this first happens at the end of safe mode,
        alarms and triggers with `at_start` then fire for values that changed before.

        The loop runs other tasks in between. An event then fires either all old or all new triggers of an automation.
        """
        async with self._arming:
            await in_steps(self._environment.clock, self._arm())

    def _arm(self) -> Iterator[None]:
        """Change the triggers of at most one automation per step."""
        files = {file.definition.id: file for file in self.catalog.list_files()}
        is_complete = self.catalog.is_complete
        self._switch_all()
        yield
        for id_ in [*(id_ for id_ in self._files if id_ not in files), *files]:
            if self.is_stopping:
                return
            if (file := files.get(id_)) is not self._files.get(id_):
                self._replace(id_, file)
            yield
        yield from self._watch_comparisons()
        self._environment.variables.watch(self._index.names_of("variable"))
        if is_complete:
            self._states.remove_others(files)
        self._environment.timers.recheck()
        if not self._is_armed:
            self._is_armed = True
            yield from self._catch_up()

    def _replace(self, id_: str, file: LoadedFile[AutomationDefinition] | None) -> None:
        """Use this file for the automation from now on. Without a file, delete the automation."""
        old = self._active.get(id_, [])
        if file is None:
            del self._files[id_], self._active[id_]
            for active in old:
                self._stop(active)
            self._index.remove_all_of(old)
            return
        self._files[id_], self._active[id_] = file, self._carry_over(old, file)
        if self._active[id_] is not old:
            self._index.remove_all_of(old)
            self._index.add(self._active[id_])

    def _watch_comparisons(self) -> Iterator[None]:
        """Watch the comparisons of conditions with `for_secs`. A step collects the comparisons of one automation."""
        watched: defaultdict[str, dict[str, Comparison]] = defaultdict(dict)
        for file in self._files.values():
            for device_id, comparison in file.definition.comparisons:
                watched[device_id][comparison.key] = comparison
            yield
        self._change_times.watch(watched)

    def _switch_all(self) -> None:
        self._states.switch_all({each.id: each.enabled for each in self.catalog.list_definitions()})

    def _carry_over(self, old: list[ActiveTrigger], file: LoadedFile[AutomationDefinition]) -> list[ActiveTrigger]:
        """Return the automation's triggers. Unchanged triggers keep their waits and schedules."""
        resumes = file.definition.policy.resumable_schedule
        if old and old[0].resumes == resumes and [each.trigger for each in old] == [*file.definition.triggers]:
            for active in old:
                active.file = file
            return old
        known: defaultdict[str, list[ActiveTrigger]] = defaultdict(list)
        for active in reversed(old):
            if active.resumes == resumes:
                known[active.key].append(active)
            else:
                self._stop(active)
        found = []
        for trigger, key in zip(file.definition.triggers, file.definition.trigger_keys, strict=True):
            if same := known[key]:
                found.append(same.pop())
                continue
            active = ActiveTrigger(file=file, trigger=trigger, key=key)
            found.append(active)
            if isinstance(trigger, TimedTrigger):
                self.schedules.start(active, trigger)
        for active in (each for left in known.values() for each in left):
            self._stop(active)
        for active in found:
            active.file = file
        self._states.drop_other_waits(file.definition.id, {each.key for each in found})
        return found

    def _stop(self, active: ActiveTrigger) -> None:
        active.is_stopped = True
        self.schedules.stop(active)
        self._waits.stop(active)

    def _on_event(self, event: events.Event) -> None:
        if not self._is_armed:
            self._keep_for_arming(event)
            return
        if isinstance(event, events.AttributesFirstReported):
            self._resume_waits(event.device, event.attributes)
            return
        if isinstance(event, events.DoubtfulValuesRepeated):
            event = _repetition(event.device, event.attributes)
        if isinstance(event, events.DeviceRemoved):
            for active in self._waits.of(event.device_id):
                (self._waits.drop if event.is_kept else self._waits.end)(active, event.device_id)
        found = self._index.of(event, self._waits)
        is_waiting = bool(self._undispatched or self._undispatched_alarms)
        if found and (is_waiting or len(found) > MAX_DISPATCHED_AT_ONCE):
            if not is_waiting:
                self._tasks.start(self._dispatch_later(), "dispatch of events")
            self._append_undispatched(found, event)
            return
        for active in found:
            self._dispatch_safely(active, event)

    def _append_undispatched(self, found: Collection[ActiveTrigger], event: events.Event) -> None:
        """Dispatch the event later to these triggers. Triggers for its alarms overtake all others."""
        if alarms := _alarms_of(event):
            urgent = [each for each in found if _attribute_of(each) in alarms]
            found = [each for each in found if _attribute_of(each) not in alarms]
            if urgent:
                self._undispatched_alarms.append((iter(urgent), event, 0))
        if not found:
            return
        matches = len(found) + MATCHES_OF_EVENT
        if self._undispatched_matches + matches <= MAX_UNDISPATCHED:
            self._undispatched_matches += matches
            self._undispatched.append((iter(tuple(found)), event, matches))
        elif not self._drops_events:
            self._drops_events = True
            work = Counter[str]()
            for _, waiting, count in self._undispatched:
                work[_name_source(waiting)] += count
            log.error(TOO_MANY_EVENTS, work.most_common(1)[0][0])

    def _catch_up(self) -> Iterator[None]:
        """Resume the waits of devices that reported in safe mode, and repeat the changes, one device per step."""
        reports, self._first_reports = self._first_reports, {}
        for id_, attributes in reports.items():
            if (device := self._registry.find_device(id_)) is not None:
                self._resume_waits(device, attributes)
            yield
        yield from self._registry.repeat_doubtful()

    def _keep_for_arming(self, event: events.Event) -> None:
        """Remember the attributes that a device reports first, or that change, in safe mode."""
        if isinstance(event, events.AttributesFirstReported):
            id_ = event.device.id
            self._first_reports[id_] = self._first_reports.get(id_, frozenset()) | event.attributes
        elif isinstance(event, events.DeviceStateChanged):
            self._registry.doubt(event.device.id, event.changed)
        elif isinstance(event, events.DoubtfulValuesRepeated):
            self._registry.doubt(event.device.id, event.attributes)

    async def _dispatch_later(self) -> None:
        await in_steps(self._environment.clock, self._dispatch_waiting())

    def _dispatch_waiting(self) -> Iterator[None]:
        """Dispatch the waiting events, alarms first, each queue in order, one trigger per step."""
        while queue := self._undispatched_alarms or self._undispatched:
            found, event, matches = queue[0]
            if (active := next(found, None)) is None:
                queue.popleft()
                self._undispatched_matches -= matches
                continue
            if not active.is_stopped:
                self._dispatch_safely(active, event)
            yield
        self._drops_events = False

    def _dispatch_safely(self, active: ActiveTrigger, event: events.Event) -> None:
        try:
            self._dispatch(active, event)
        except Exception as error:  # a fault in one automation must not stop the others
            log.error("%s: %s: %s", active.label, type(error).__name__, error, exc_info=error)

    def _resume_waits(self, device: Device, attributes: Collection[str]) -> None:
        for active in self._index.of_device(device, attributes):
            trigger = _waiting_trigger(active)
            if trigger is not None and trigger.attribute in attributes:
                self._waits.resume(active, trigger, device)

    def _dispatch(self, active: ActiveTrigger, event: events.Event) -> None:
        if (waiting := _waiting_trigger(active)) is not None:
            if isinstance(event, events.DeviceStateChanged):
                self._waits.follow(active, waiting, event)
        elif isinstance(active.trigger, EventTrigger) and (match := active.trigger.match(event)) is not None:
            self._decider.fire(active, match.dated(self._environment))


def _change(before: Device, after: Device) -> events.DeviceStateChanged:
    """Return the event that the registry publishes for this change of a virtual device."""
    return events.DeviceStateChanged(device=after, previous=before, changed=changed_attributes(before, after))


def _repetition(device: Device, attributes: frozenset[str]) -> events.DeviceStateChanged:
    """Return the event for attributes that may have changed and changed back."""
    return events.DeviceStateChanged(
        device=device, previous=device, changed=attributes, baseline=attributes, doubtful=attributes
    )


def _alarms_of(event: events.Event) -> frozenset[str]:
    """Return the changed alarm attributes."""
    if not isinstance(event, events.DeviceStateChanged):
        return frozenset()
    return frozenset(each for each in event.changed if event.device.is_alarm(each))


def _name_source(event: events.Event) -> str:
    """Return the device, variable, timer, or hook of the event."""
    if isinstance(event, events.DeviceStateChanged):
        return f"device '{event.device.id}'"
    if isinstance(event, events.DeviceEvent):
        return f"device '{event.device_id}'"
    kind, name = SUBJECTS[type(event)](event)
    return f"{kind} '{name}'" if name else f"{kind}s"


def _attribute_of(active: ActiveTrigger) -> str | None:
    return active.trigger.attribute if isinstance(active.trigger, DeviceTrigger) else None


def _waiting_trigger(active: ActiveTrigger) -> DeviceTrigger | None:
    """Return the trigger if it has a wait."""
    trigger = active.trigger
    return trigger if isinstance(trigger, DeviceTrigger) and trigger.wait_secs is not None else None
