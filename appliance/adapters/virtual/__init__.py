"""Devices that exist only in the configuration: switches for automations, and replacements for hardware."""
