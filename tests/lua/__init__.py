"""Tests of the room `lua`."""
