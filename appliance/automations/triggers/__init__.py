"""Triggers start an automation. Each kind of trigger is one class. A trigger's class reads the fields (`parse`),
lists the `subjects` and `names`, and makes the event table for Lua. Read `base`, then `device`, `event`, and `time`.
Each of these files ends with a table of its kinds."""
