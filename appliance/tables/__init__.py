"""Tables that came from outside, read with checks: configuration, definitions in Lua, objects of JSON."""
