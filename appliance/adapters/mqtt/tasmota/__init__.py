"""Tasmota's native discovery. Read `discovery` first, then `sensors` (names and units), and `light`."""
