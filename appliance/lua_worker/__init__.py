"""The worker: a process that holds every Lua state and nothing else, so that it can be killed at any moment."""
