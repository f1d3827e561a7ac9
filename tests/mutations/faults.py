"""The list of deliberate faults: what is promised, what breaks it, and which tests must see that.

Where the code changes so that the text is not found any more, the fault is written anew: the promise stays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: in `file`, below `appliance/`, `text` (once there) is replaced by `instead`.

    `tests` are names of files and tests below `tests/`, of which one at least must fail; they are few, for speed.
    """

    promise: str
    file: str
    text: str
    instead: str
    tests: tuple[str, ...]


def fault(promise: str, file: str, text: str, instead: str, *tests: str) -> Fault:
    """A row of the table."""
    return Fault(promise, file, text, instead, tests)


FAULTS = (
    # What is on the card.
    fault(
        "a 2xx means that the change is synced",
        "store/journal.py",
        "        self._disk.sync(self._descriptor)\n        self.is_sync_broken = False",
        "        self.is_sync_broken = False",
        "store/test_journal.py",
    ),
    fault(
        "nobody sees a change before it is on the card",
        "store/change_queue.py",
        "        draft.add(edit)\n",
        "        draft.add(edit)\n        self._registry.commit(edit)\n",
        "store/test_changes.py",
    ),
    fault(
        "a sync that failed is never tried again on the same file",
        "store/journal.py",
        "self.is_sync_broken = True",
        "self.is_sync_broken = False",
        "store/test_journal.py",
    ),
    fault(
        "every line's checksum is looked at",
        "store/crc.py",
        "if end is None or int(end[1], 16) != zlib.crc32(line[: end.start()]):",
        "if end is None:",
        "store/test_corruption.py",
    ),
    fault(
        "damage in front of good records is never cut silently",
        "store/journal.py",
        "return self.header is None or self.lost > 0",
        "return self.header is None",
        "store/test_corruption.py",
    ),
    fault(
        "a store of a newer format is refused",
        "store/recovery.py",
        'header["format"] > file_names.STORE_FORMAT',
        'header["format"] > file_names.STORE_FORMAT + 9',
        "store/test_corruption.py",
    ),
    fault(
        "the names of a new generation are synced before it counts",
        "store/files.py",
        "            self._disk.sync_folder()\n        except",
        "        except",
        "store/test_crashes.py::test_a_cut_at_any_point_keeps_what_was_acknowledged",
    ),
    fault(
        "seeing a device again costs no write",
        "store/recorder.py",
        'return {key: each for key, each in value.items() if key != "at"}',
        "return value",
        "journeys/test_restart.py::TestWhatIsWritten::test_a_change_and_its_reverse_write_nothing",
    ),
    fault(
        "one hub a data directory",
        "store/lock.py",
        "fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        "store/test_lock.py",
    ),
    fault(
        "a full card is answered 503",
        "api/error_responses.py",
        '"store_unavailable": Code(503',
        '"store_unavailable": Code(400',
        "journeys/test_bad_card.py::TestEveryRoute",
    ),
    fault(
        "keys are kept as hashes only",
        "api/keyring.py",
        "            token_hash=token_hash,",
        "            token_hash=token,",
        "journeys/test_keys.py::TestMaking::test_the_answer_is_the_key_with_its_secret",
    ),
    # Who may do what.
    fault(
        "a read key writes nothing",
        "api/auth.py",
        "Role.READ: frozenset({Role.READ})",
        "Role.READ: frozenset({Role.READ, Role.WRITE})",
        "api/test_roles.py",
    ),
    fault(
        "without a key nobody hears which paths exist",
        "api/gate.py",
        "        except LaresError as refusal:\n            return refusal",
        "        except LaresError:\n            pass",
        "api/test_roles.py",
    ),
    fault(
        "a revoked key opens nothing from now on",
        "api/auth.py",
        "return principal.key is None or self._find(principal.key.name) is principal.key",
        "return True",
        "api/test_auth.py",
    ),
    fault(
        "the event streams of a revoked key are closed",
        "api/stream.py",
        "self._disconnect(event.key_id)",
        "pass",
        "journeys/test_keys.py::TestRevoking::test_its_event_streams_are_closed_with_1008_and_no_others",
    ),
    fault(
        "each key has a rate of its own",
        "api/gate.py",
        "self._buckets.take(principal.key_id)",
        'self._buckets.take("all")',
        "api/test_rate.py",
    ),
    fault(
        "429 says when to try again",
        "api/error_responses.py",
        'return {"Retry-After": str(math.ceil(error.wait_secs))}',
        "return None",
        "api/test_rate.py",
    ),
    fault(
        "the log never tells a secret",
        "api/keyring.py",
        'log.info("%s was made, role %s, label %s", key.id, role, label)',
        'log.info("%s was made, role %s, label %s", token, role, label)',
        "journeys/test_secrets.py::test_a_configured_master_key_stands_where_it_was_written_and_nowhere_else",
    ),
    fault(
        "the file with the first key goes when that key was used",
        "cli/first_key.py",
        "key_file.unlink(missing_ok=True)",
        "pass",
        "cli/test_first_key.py",
    ),
    fault(
        "pages of other origins are named exactly",
        "api/cors.py",
        "return stated[0] if len(stated) == 1 and stated[0] in self._origins else None",
        "return stated[0] if stated and stated[0].startswith(tuple(self._origins)) else None",
        "api/test_cors.py",
    ),
    # Requests.
    fault(
        "a request whose length is stated twice is refused (RFC 9112)",
        "api/sanic_http/framing.py",
        "if len(codings) + len(lengths) > 1:",
        "if len(lengths) > 2:",
        "api/test_framing.py",
    ),
    fault(
        "a body has a limit, also where it comes in chunks",
        "api/body.py",
        "if len(body) > limit:",
        "if len(body) > 9 * limit:",
        "api/test_errors.py",
    ),
    fault(
        "one peer does not take all connections",
        "api/connections.py",
        "held < self._per_peer and ",
        "",
        "api/test_connections.py::TestTable",
    ),
    fault(
        "a reader that is too slow hears how much it missed",
        "api/stream.py",
        "            if self._dropped:\n",
        "            if False:\n",
        "api/test_stream.py::TestFallingBehind::test_too_many_at_once_are_counted_exactly",
    ),
    fault(
        "of a full queue the oldest frame is dropped, not the connection's end",
        "api/stream.py",
        "deque(maxlen=capacity)",
        "deque()",
        "api/test_stream.py::TestFallingBehind::test_too_many_at_once_are_counted_exactly",
    ),
    fault(
        "an id that is asked for twice comes once",
        "home/registry.py",
        "for id_ in dict.fromkeys(ids) if",
        "for id_ in ids if",
        "home/test_registry.py",
    ),
    fault(
        "a group holds each member once, in the order given",
        "home/changes.py",
        "return tuple(dict.fromkeys(members))",
        "return tuple(sorted(members))",
        "home/test_registry.py",
    ),
    fault(
        "deleting a room tells of each device that was in it",
        "home/registry.py",
        "        for device_id in sorted(edit.room_assignments):\n",
        "        for device_id in ():\n",
        "home/test_registry.py",
    ),
    # Devices.
    fault(
        "a sighting without a change is no event",
        "home/registry.py",
        "        if attributes != device.attributes:\n",
        "        if True:\n",
        "home/test_registry.py",
    ),
    fault(
        "what the catalog does not know is dropped",
        "home/observations.py",
        "    if not is_custom(key):\n        raise",
        "    if False:\n        raise",
        "home/test_values.py",
        "home/test_registry.py",
    ),
    fault(
        "a command is answered when the device shows the result",
        "adapters/elgato_lights/adapter.py",
        "errors = {index: self._mismatch(lights, index, change) for index, change in changes.items()}",
        "errors: dict[int, str | None] = dict.fromkeys(changes)",
        "adapters/test_elgato_adapter.py",
    ),
    fault(
        "a device that is away is asked ever more rarely",
        "adapters/polling.py",
        "    if misses < POLLS_TO_LOSE:\n        return interval",
        "    if misses < 1000:\n        return interval",
        "journeys/test_outage.py::test_polls_grow_seldom_while_it_is_away",
    ),
    fault(
        "one poll without an answer is no outage",
        "adapters/polling.py",
        "POLLS_TO_LOSE = 2",
        "POLLS_TO_LOSE = 1",
        "adapters/test_polling.py",
    ),
    fault(
        "an outage is told once",
        "adapters/publisher.py",
        "        if not self._is_lost:\n",
        "        if True:\n",
        "adapters/test_polling.py",
    ),
    fault(
        "what was asked before a command ended does not undo it",
        "adapters/polling.py",
        "if self.gate.is_stale(ended_before):",
        "if False:",
        "adapters/test_polling.py",
    ),
    fault(
        "an exception in an adapter ends nothing: it is started again",
        "adapters/adapter_runner.py",
        "            await clock.sleep(restart_delay(self._failures))\n",
        "            return\n",
        "adapters/test_faults.py::test_an_adapter_that_fails_is_made_anew_with_back_off_and_said_once_with_its_traceback",
    ),
    fault(
        "a press that the broker has kept does not fire",
        "adapters/mqtt/entity_catalog.py",
        "        if entity.reports_events and message.is_retained:\n",
        "        if False:\n",
        "adapters/mqtt/test_adapter.py",
    ),
    fault(
        "what this hub itself announced on a broker is not taken in",
        "adapters/mqtt/entity_catalog.py",
        "return announcement.origin == ORIGIN and any(",
        "return any(() for _ in (ORIGIN,)) and any(",
        "adapters/mqtt/test_parts.py::test_what_a_hub_itself_announced_is_not_taken_in_and_what_another_did_is",
    ),
    # Automations.
    fault(
        "a time that the clocks skip comes at the end of the gap",
        "automations/wall_clock.py",
        "return None if is_whole_day else after_gap",
        "return None",
        "automations/test_wall_clock.py",
    ),
    fault(
        "a local time that comes twice fires once, at the first",
        "automations/wall_clock.py",
        "instant = local.replace(tzinfo=zone).astimezone(UTC)",
        "instant = local.replace(tzinfo=zone, fold=1).astimezone(UTC)",
        "automations/test_wall_clock.py",
    ),
    fault(
        "a cooldown lasts from the end of the last good run",
        "automations/policy.py",
        "ended_at=now if memory.is_running else memory.ended_at",
        "ended_at=None",
        "automations/test_policy.py",
    ),
    fault(
        "a run that failed gives the cooldown back",
        "automations/policy.py",
        "return replace(memory, is_running=False)",
        "return memory",
        "automations/test_policy.py",
    ),
    fault(
        "the same event within the window fires once",
        "automations/policy.py",
        "if key in memory.decided:",
        "if False:",
        "automations/test_policy.py",
    ),
    fault(
        "an automation that sets itself off is paused",
        "automations/brake.py",
        "record.paused_until = now + PAUSE_SECS",
        "record.paused_until = now",
        "automations/test_brake.py",
    ),
    fault(
        "a wait goes on over a restart from where it began",
        "automations/waits.py",
        "return (now - began_at).total_seconds()",
        "return 0.0",
        "automations/test_waits.py",
    ),
    fault(
        "a timer is on the card before the call returns",
        "automations/timers.py",
        "await self._put({TIMER_PREFIX + name: timer.to_json()})",
        "self._remember(TIMER_PREFIX + name, timer.to_json())",
        "automations/test_timers.py",
    ),
    fault(
        "until the clock is trusted nothing falls due by it",
        "clock.py",
        "            if now > self.newest:\n",
        "            if True:\n",
        "test_clock.py",
    ),
    fault(
        "an automation that is switched off does not run",
        "automations/automation_executor.py",
        "        if not state.is_enabled:\n",
        "        if False:\n",
        "automations/test_automation_executor.py",
    ),
    # Lua.
    fault(
        "single drops what comes while it runs",
        "lua/modes.py",
        "Decision.DROP if slots.running else Decision.RUN",
        "Decision.RUN",
        "lua/test_modes.py",
    ),
    fault(
        "queued runs in the order of arrival",
        "lua/modes.py",
        "slots.waiting.popleft()",
        "slots.waiting.pop()",
        "lua/test_modes.py",
    ),
    fault(
        "a reload takes all files or none",
        "lua/lua_catalog.py",
        "        if not faults:\n            self._accept(reading)",
        "        if True:\n            self._accept(reading)",
        "journeys/test_reload.py::test_a_reload_with_faults_lists_all_of_every_file_and_changes_nothing",
    ),
    fault(
        "a script that computes too long is stopped",
        "lua_worker/worker_execution.py",
        "return self._reason_then if monotonic() > self._until else None",
        "return None",
        "lua/test_failures.py::test_a_limit_of_time_is_a_timeout_and_names_the_line",
    ),
    fault(
        "a script's memory is limited",
        "lua_worker/worker_execution.py",
        "self._lua.set_max_memory(self._max_memory)",
        "pass",
        "lua/test_failures.py::test_a_limit_of_memory_names_the_line",
    ),
    fault(
        "no script reaches the box",
        "lua_worker/prelude/sandbox.lua",
        "  os = {clock",
        "  os = {getenv = os.getenv, execute = os.execute, clock",
        "lua/test_sandbox.py::test_the_environment_of_the_process_stays_its_own",
    ),
    # The command line.
    fault(
        "a restore takes effect in one step",
        "cli/restore.py",
        "if _exchange(new, folder):",
        "if False:",
        "cli/test_restore_cut.py",
    ),
    fault(
        "a backup holds no master key",
        "cli/backup.py",
        "files[name] = without_key(text, str(config)).encode()",
        "files[name] = text.encode()",
        "cli/test_backup.py::TestMasterKey",
    ),
    fault(
        "a master key that anybody could guess is refused, but on loopback",
        "config.py",
        'if not built["api"].bind_address.is_loopback or any(',
        "if any(",
        "test_config.py",
    ),
    fault(
        "the page talks to no other host",
        "api/static_files.py",
        '"content-security-policy": ',
        '"x-policy": ',
        "dashboard/test_files.py",
    ),
    fault(
        "files of keys and backups are for their owner's eyes",
        "store/atomic.py",
        "0o600",
        "0o644",
        "cli/test_first_key.py",
        "cli/test_backup.py",
    ),
    fault(
        "a port that is taken is exit code 69",
        "api/server.py",
        "raise StartFailed(_explain_bind_error(error, address), os.EX_UNAVAILABLE)",
        "raise StartFailed(_explain_bind_error(error, address), os.EX_OSERR)",
        "cli/test_commands_line.py::TestRefusals::test_a_port_that_is_taken_is_69_and_a_sentence_that_says_what_to_do",
    ),
)
"""Every fault."""


def problems(fault: Fault) -> list[str]:
    """Why the fault cannot be made in the tree as it is."""
    file = ROOT / "appliance" / fault.file
    found = file.read_text().count(fault.text) if file.exists() else 0
    wrong = [] if found == 1 else [f"{fault.file} has its text {found} times, not once: {fault.text!r}"]
    for each in fault.tests:
        path, *names = each.split("::")
        text = (ROOT / "tests" / path).read_text() if (ROOT / "tests" / path).exists() else ""
        wrong += [f"tests/{path} has no {name}" for name in names or ["test_"] if not re.search(rf"\b{name}", text)]
    return wrong
