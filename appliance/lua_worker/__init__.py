"""The worker process. It owns the Lua states and nothing else, so the hub can kill it at any moment."""
