"""Tests of `benchmarks`: what the bench makes of figures."""
