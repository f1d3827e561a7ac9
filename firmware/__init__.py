"""Builds, starts, and installs the single file."""
