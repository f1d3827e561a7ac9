"""Triggers start an automation. Each kind of trigger is a class. The class reads the trigger's fields (`parse`),
lists its `subjects` and `names`, and creates the event table for Lua.

Read `base`, then `device`, `event`, and `time`. `kinds` contains the table of all kinds.
"""
