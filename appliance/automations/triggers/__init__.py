"""Triggers as values; one class holds everything about each kind.

A kind reads its own fields (`parse`), lists its `subjects` and `names`, and makes the event table for Lua. Read
`base`, then `device`, `event`, and `time`; each ends with a table of its kinds.
"""
