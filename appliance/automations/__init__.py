"""Automations: when something happens or is due, if it may, not again so soon, then."""
