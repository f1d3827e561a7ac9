"""Tasmota's native discovery. Read `device` (the configuration of a device) first, then `announcements`, `sensors`
(names and units), `light`, and `press`."""
