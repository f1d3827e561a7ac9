"""Attacks: by clients, scripts, a broker, a device, and another user of the box."""
