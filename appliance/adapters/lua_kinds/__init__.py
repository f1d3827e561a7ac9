"""Kinds of adapter that are written in Lua, and those that come with Lares."""
