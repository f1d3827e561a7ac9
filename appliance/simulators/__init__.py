"""Simulated devices that speak their vendors' protocols on loopback, with faults on demand."""
