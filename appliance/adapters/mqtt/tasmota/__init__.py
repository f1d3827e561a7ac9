"""Tasmota's native discovery. Read `announcements` first, then `sensors` (names and units), and `light`."""
