"""The worker process. The process contains only the Lua states, so the hub can kill it at any moment."""
