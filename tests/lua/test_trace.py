"""The trace keeps the newest steps, and of the log's lines no more than fifty."""

from __future__ import annotations

from appliance.lua.context import MAX_LOG_STEPS, MAX_STEP_CHARS, MAX_TRACE_STEPS, Trace
from tests.fakes.clock import VirtualClock


def kept(trace: Trace, step: str) -> list[int]:
    """The numbers of the steps of this sort that are kept."""
    return [each["number"] for each in trace.list_steps() if each["step"] == step]


def test_of_lines_of_the_log_the_newest_fifty_are_kept_and_every_other_step() -> None:
    trace = Trace(VirtualClock())
    for number in range(90):
        trace.add("log", number=number)
        if number % 9 == 0:
            trace.add("command", number=number)
    assert kept(trace, "log") == list(range(90 - MAX_LOG_STEPS, 90))
    assert kept(trace, "command") == list(range(0, 90, 9))


def test_of_all_steps_the_newest_two_hundred_are_kept_and_lines_that_went_make_room_for_others() -> None:
    trace = Trace(VirtualClock())
    for number in range(MAX_LOG_STEPS):
        trace.add("log", number=number)
    for number in range(MAX_TRACE_STEPS - 10):
        trace.add("command", number=number)
    assert len(trace.list_steps()) == MAX_TRACE_STEPS
    for number in range(MAX_LOG_STEPS, MAX_LOG_STEPS + 30):
        trace.add("log", number=number)
    assert kept(trace, "log") == list(range(MAX_LOG_STEPS, MAX_LOG_STEPS + 30))
    assert len(kept(trace, "command")) == MAX_TRACE_STEPS - 30


def test_a_step_has_its_time_and_a_long_text_is_cut() -> None:
    clock = VirtualClock()
    trace = Trace(clock)
    clock.suspend(1.5)
    trace.add("log", message="x" * (MAX_STEP_CHARS + 1), level="info")
    [step] = trace.list_steps()
    assert step == {"at_ms": 1500, "step": "log", "message": "x" * (MAX_STEP_CHARS - 1) + "…", "level": "info"}
    trace.add("command", value={"value": 20, "unit": "x" * (MAX_STEP_CHARS + 1)})
    assert trace.list_steps()[-1]["value"] == {"value": 20, "unit": "x" * (MAX_STEP_CHARS - 1) + "…"}
