"""Tests of the package `lua`."""
