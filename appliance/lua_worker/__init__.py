"""The worker: a process that owns every Lua state. It owns nothing else, so the hub can kill it at any moment."""
