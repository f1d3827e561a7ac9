"""Triggers as values; each kind has everything about it in one class.

A kind reads its own fields (`parse`), lists its `subjects` and `names`, and makes the event table that Lua gets. Read
`base`, then `device`, `event`, and `time`; each ends with a table of its kinds.
"""
