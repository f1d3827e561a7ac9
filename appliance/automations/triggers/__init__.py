"""Triggers, as values: what an automation waits for, each kind with all that there is to know of it.

A kind reads its own fields (`parse`), lists what it listens to (`subjects`) and names (`names`), and makes the event
table that Lua gets. Read `base`, then `device`, `event`, and `time`; each ends with a table of its kinds.
"""
