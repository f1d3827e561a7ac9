"""Reads and checks external tables: the configuration, definitions in Lua, and JSON objects."""
