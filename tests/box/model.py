"""The expected content of the card: each confirmed change, and, for an interrupted change, the old or the new
value."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.box.emulator import Emulator, NoAnswer
from tests.box.home import JOBS, TIMERS

LAMP = "virtual:lamp"
MAX_KEYS = 6
"""Maximum number of valid keys. After each start, each key costs one check of a slow hash."""

CUT_SECS = 20.0
"""Within this number of seconds before a power cut, a timer may have fired without a trace, because its automation
had begun but not acted."""

LATE_SECS = 90.0
"""Maximum seconds after a timer's due time, or after the hub's start, until the timer's automation runs on an
emulated box."""


class NothingToAsk(Exception):
    """Raised if no change of this kind is possible now."""


@dataclass(slots=True)
class Cell:
    """The possible values of one item: a single value, or both the old and the new value after an unanswered
    request."""

    allowed: list[Any]

    def ask(self, value: Any) -> None:
        """Record that a request for the value has begun."""
        self.allowed.append(value)

    def settle(self, value: Any) -> None:
        """Record that the item has this value."""
        self.allowed[:] = [value]


@dataclass(slots=True, kw_only=True)
class TimerRun:
    """One run of a timer. Times are in this machine's clock. `due` is None until the due time is known."""

    name: str
    number: int
    due: float
    is_known: bool = False
    is_cancelled: bool = False
    may_be_lost: bool = False
    is_settled: bool = False


@dataclass(slots=True)
class Key:
    id: str
    secret: str
    is_valid: Cell


@dataclass
class Model:
    """Requests changes, one of each kind at a time. Compares the box's state with the model after a start."""

    box: Emulator
    chance: random.Random
    cells: dict[str, Cell] = field(default_factory=dict)
    keys: list[Key] = field(default_factory=list)
    labels: dict[str, Cell] = field(default_factory=dict)
    runs: list[TimerRun] = field(default_factory=list)
    acknowledged: Counter[str] = field(default_factory=Counter)
    cut_off: Counter[str] = field(default_factory=Counter)
    up_since: float = field(default_factory=time.time)
    outcomes: Counter[str] = field(default_factory=Counter)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    failures: list[str] = field(default_factory=list)

    # --- changes -----------------------------------------------------------------------------------

    def change_until(self, stop: threading.Event) -> list[threading.Thread]:
        """Request changes until `stop` is set or a request is unanswered. Each kind of change has its own thread."""
        kinds = (self._set_variable, self._switch_job, self._make_or_drop_room, self._change_key, self._change_timer)
        threads = [threading.Thread(target=self._repeat, args=(each, stop)) for each in (*kinds, self._change_lamp)]
        for thread in threads:
            thread.start()
        return threads

    def _repeat(self, change: Callable[[random.Random], None], stop: threading.Event) -> None:
        chance = random.Random(self.chance.random())
        kind = change.__name__.strip("_")
        while not stop.is_set():
            try:
                change(chance)
                self.acknowledged[kind] += 1
            except NothingToAsk:
                stop.wait(1)
            except NoAnswer:
                self.cut_off[kind] += 1
                return
            except AssertionError as failure:
                self.failures.append(str(failure))
                return
            stop.wait(chance.uniform(0, 0.5))

    def _cell(self, name: str, value: Any) -> Cell:
        return self.cells.setdefault(name, Cell([value]))

    def _next(self) -> int:
        return next(self._numbers)

    def _set_variable(self, chance: random.Random) -> None:
        name = f"value_{chance.randrange(5)}"
        value = self._next()
        cell = self._cell(f"variable {name}", None)
        cell.ask(value)
        self.box.demand("PUT", f"/variables/{name}", {"value": value})
        cell.settle(value)

    def _switch_job(self, chance: random.Random) -> None:
        name, expected = chance.choice(JOBS), chance.random() < 0.5
        cell = self._cell(f"job {name}", True)
        cell.ask(expected)
        self.box.demand("POST", f"/automations/{name}/enabled", {"enabled": expected})
        cell.settle(expected)

    def _make_or_drop_room(self, chance: random.Random) -> None:
        name = f"room_{chance.randrange(5)}"
        cell = self._cell(f"room {name}", False)
        expected = not cell.allowed[0]
        cell.ask(expected)
        if expected:
            self.box.demand("POST", "/rooms", {"id": name, "name": name})
        else:
            self.box.demand("DELETE", f"/rooms/{name}")
        cell.settle(expected)

    def _change_lamp(self, chance: random.Random) -> None:
        if chance.random() < 0.5:
            expected: Any = f"Lamp {self._next()}"
            cell = self._cell("lamp name", LAMP)  # the lamp has no name yet
            cell.ask(expected)
            self.box.demand("POST", f"/devices/{LAMP}/name", {"name": expected})
        else:
            expected = chance.randrange(1, 101)
            cell = self._cell("lamp brightness", 50)
            cell.ask(expected)
            self.box.demand(
                "POST", f"/devices/{LAMP}/command", {"capability": "brightness", "action": "set", "value": expected}
            )
        cell.settle(expected)

    def _change_key(self, chance: random.Random) -> None:
        valid = [key for key in self.keys if key.is_valid.allowed == [True]]
        if len(valid) >= MAX_KEYS or (valid and chance.random() < 0.4):
            key = chance.choice(valid)
            key.is_valid.ask(False)
            self.box.demand("DELETE", f"/auth/keys/{key.id}")
            key.is_valid.settle(False)
            return
        label = f"key {self._next()}"
        cell = self.labels[label] = Cell([False, True])
        made = self.box.demand("POST", "/auth/keys", {"label": label, "role": "read"})
        cell.settle(True)
        self.keys.append(Key(made["id"], made["key"], Cell([True])))

    def _change_timer(self, chance: random.Random) -> None:
        if chance.random() < 0.2 and self._cancel_timer(chance):
            return
        name = chance.choice([each for each in TIMERS if not self._is_busy(each)] or [""])
        if not name:
            raise NothingToAsk
        secs = chance.choice((5, 15, 30, 60))
        run = TimerRun(name=name, number=self._next(), due=time.time() + secs)
        self.runs.append(run)
        payload = {"name": name, "secs": secs, "number": run.number}
        answer = self.box.demand("POST", "/automations/start_timer/execute", {"trigger_payload": payload})
        assert answer["status"] == "ok", answer
        run.due, run.is_known = time.time() + secs, True

    def _cancel_timer(self, chance: random.Random) -> bool:
        """Cancel a running timer that does not end soon. Return whether a timer was cancelled."""
        waiting = [run for run in self.runs if self._is_open(run) and run.is_known and run.due > time.time() + 10]
        if not waiting:
            return False
        run = chance.choice(waiting)
        run.is_known = False
        self.box.demand("DELETE", f"/timers/{run.name}")
        run.is_cancelled = True
        return True

    @staticmethod
    def _is_open(run: TimerRun) -> bool:
        return not (run.is_cancelled or run.is_settled)

    def _is_busy(self, name: str) -> bool:
        """Return whether a timer of this name can still be running. Another start would replace a running timer."""
        return any(run.name == name and self._is_open(run) for run in self.runs)

    # --- the cut, and the checks after it ---------------------------------------------------

    def note_cut(self) -> None:
        """Record a power cut."""
        now = time.time()
        for run in self.runs:
            if self._is_open(run) and run.due - 1 <= now <= max(run.due, self.up_since) + CUT_SECS:
                run.may_be_lost = True
        self.up_since = now  # until the box is ready, a timer may fire at any time

    def note_start(self) -> None:
        """Record that the box is ready."""
        self.up_since = time.time()

    def compare(self) -> None:
        """Fail if the box reports an impossible state. If the state is possible, resolve the pending changes."""
        assert not self.failures, self.failures
        box = self.box
        shown: dict[str, Any] = {
            f"variable {each['name']}": each["value"] for each in box.demand("GET", "/variables")
        }
        shown |= {f"job {each['id']}": each["status"] != "disabled" for each in box.demand("GET", "/automations")}
        shown |= {f"room {each['id']}": True for each in box.demand("GET", "/rooms")}
        lamp = box.demand("GET", f"/devices/{LAMP}")
        shown |= {"lamp name": lamp["name"], "lamp brightness": lamp["attributes"]["brightness"]}
        for name, cell in self.cells.items():
            found = shown.get(name, False if name.startswith("room ") else None)
            assert found in cell.allowed, f"{name} is {found!r}, and must be one of {cell.allowed!r}"
            cell.settle(found)
        self._compare_keys()
        self._compare_timers()

    def _compare_keys(self) -> None:
        listed = {each["id"]: each["label"] for each in self.box.demand("GET", "/auth/keys")}
        for label, cell in self.labels.items():
            known = next((key for key in self.keys if listed.get(key.id) == label), None)
            found = label in listed.values()
            if cell.allowed == [False, True]:
                cell.settle(found)
            assert known is None or found
        for key in self.keys:
            status, _ = self.box.ask("GET", "/timers", key=key.secret)
            assert status in (200, 401), status
            assert (status == 200) in key.is_valid.allowed, f"key {key.id}: {status}, {key.is_valid.allowed}"
            assert (key.id in listed) == (status == 200), key.id
            key.is_valid.settle(status == 200)
        self.keys = [key for key in self.keys if key.is_valid.allowed == [True]] + [
            key for key in self.keys if key.is_valid.allowed == [False]
        ][-6:]

    def _compare_timers(self) -> None:
        """Check that each running timer is listed, and that each ended timer has fired once, or will fire soon."""
        under_way = {each["name"]: each for each in self.box.demand("GET", "/timers")}
        started = time.time()
        for run in [each for each in self.runs if not each.is_settled]:
            mine = under_way.get(run.name)
            is_there = mine is not None and mine["payload"]["number"] == run.number
            if run.is_cancelled:
                assert not is_there, f"timer {run} was cancelled"
                assert not self._count(run), f"timer {run} was cancelled, and fired"
                run.is_settled = True
                self.outcomes["cancelled"] += 1
            elif is_there:
                run.is_known = True
            else:
                self._settle(run, started)

    def _settle(self, run: TimerRun, started: float) -> None:
        """Wait until a run has fired. Do not wait for a run that the power cut may have hidden, or whose start or end
        was not acknowledged."""
        while not (count := self._count(run)) and run.is_known and not run.may_be_lost:
            assert time.time() < started + LATE_SECS, f"timer {run} is lost"
            time.sleep(0.5)
        assert count <= 1, f"timer {run} fired {count} times"
        run.is_settled = True
        never = "begun when it was cut" if run.is_known else "start or end not acknowledged"
        self.outcomes["fired once" if count else never] += 1

    def _count(self, run: TimerRun) -> int:
        status, answer = self.box.ask("GET", f"/variables/over.{run.number}")
        return int(answer["value"]) if status == 200 else 0

    def settle_timers(self) -> None:
        """Wait until each started timer has fired once."""
        while any(each["name"] in TIMERS for each in self.box.demand("GET", "/timers")):
            time.sleep(1)
        self._compare_timers()
        assert all(run.is_settled for run in self.runs)

    def recount(self) -> None:
        """Check that no timer has ever fired twice."""
        counts = {each["name"]: each["value"] for each in self.box.demand("GET", "/variables")}
        twice = {name: value for name, value in counts.items() if name.startswith("over.") and value != 1}
        assert not twice, twice
