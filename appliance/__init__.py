"""Lares, a home hub in one file."""
