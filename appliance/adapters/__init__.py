"""Vendors' devices: one adapter per configured section, and the dispatcher that sends them commands."""
