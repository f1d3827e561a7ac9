"""The worker process: owns the Lua states and nothing else, so the hub can kill the worker at any moment."""
