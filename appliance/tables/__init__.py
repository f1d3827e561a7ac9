"""Reads and checks tables from outside: the configuration, definitions in Lua, and JSON objects."""
