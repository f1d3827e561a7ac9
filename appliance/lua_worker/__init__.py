"""The worker: a process that owns every Lua state and nothing else, so that it can be killed at any moment."""
