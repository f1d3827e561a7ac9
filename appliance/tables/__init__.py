"""Tables from outside, read with checks: configuration, definitions in Lua, JSON objects."""
