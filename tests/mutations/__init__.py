"""Deliberate faults, one a promise: each must be caught by the tests that are named beside it."""
