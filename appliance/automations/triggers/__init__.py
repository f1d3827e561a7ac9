"""Triggers start an automation. Each kind of trigger is one class. It reads its fields (`parse`), lists its
`subjects` and `names`, and makes the event table for Lua. Read `base`, then `device`, `event`, and `time`. Each of
these files ends with a table of its kinds."""
