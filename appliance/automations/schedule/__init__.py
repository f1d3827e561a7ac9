"""Calls functions at a time of day, after a delay, or at an interval.

Read `scheduler` and `scheduled_calls`, then `clock_watch`, which reports whether the clock can be trusted. `cron`,
`sun`, and `wall_clock` compute the times.
"""
