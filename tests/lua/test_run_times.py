"""The deadlines of one run, on a virtual clock."""

from __future__ import annotations

from appliance.lua.running.run_limits import MAX_SLOWDOWN, RunLimits
from appliance.lua.running.run_times import RunTimes
from appliance.lua_worker.protocol import Reason
from tests.fakes.clock import VirtualClock


def test_calls_that_read_do_not_extend_the_real_time_of_lua() -> None:
    clock = VirtualClock()
    times = RunTimes(RunLimits(max_cpu_secs=2.0), clock)
    longest = 2.0 * MAX_SLOWDOWN
    assert times.resume(0.0) == (2.0, longest)
    for spent in (8.0, 16.0, 24.0):
        clock.suspend(8.0)
        times.begin_call(is_counted=True, is_reading=True)
        times.end_call(0.0)
        assert times.resume(0.1) == (2.0, max(0.0, longest - spent)), spent
        assert times.limit is Reason.REAL_TIME
    times.begin_call(is_counted=True, is_reading=False)
    times.end_call(0.0)
    assert times.resume(0.1) == (2.1, longest), "a call that waits restarts the running time"
