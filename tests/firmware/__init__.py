"""Tests of the single file and its installation."""
