"""Devices that exist in the configuration alone: switches for automations, and stand-ins for hardware."""
