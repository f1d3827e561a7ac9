"""The worker: a process that owns every Lua state. The worker owns nothing else, so the hub can kill it at any
moment."""
