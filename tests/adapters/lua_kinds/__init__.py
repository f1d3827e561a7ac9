"""Kinds of adapter in Lua."""
