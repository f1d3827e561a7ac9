"""The home as data: devices, rooms, groups, and what may happen to them; plain functions, no waiting."""
