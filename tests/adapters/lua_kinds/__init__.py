"""Adapter kinds in Lua."""
