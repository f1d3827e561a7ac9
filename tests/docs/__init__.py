"""Tests of the documentation: its examples run."""
