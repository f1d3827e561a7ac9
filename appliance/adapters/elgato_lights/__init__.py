"""Lights that speak Elgato's local HTTP interface."""
