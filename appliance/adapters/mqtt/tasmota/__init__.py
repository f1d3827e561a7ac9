"""Tasmota's native discovery: read `discovery` first, then `sensors` (names and units), `light`, and `press`."""
