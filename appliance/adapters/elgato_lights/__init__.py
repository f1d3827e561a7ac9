"""Lights with Elgato's local HTTP interface."""
