"""Tests of the files of the home."""
