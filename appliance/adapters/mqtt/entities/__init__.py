"""Announced entities: how states are read and commands written, a module for each kind, and one table of all."""
