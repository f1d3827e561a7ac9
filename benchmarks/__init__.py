"""Benchmarks, called measures. Each file is a measure and runs in a separate process. RESULTS.md contains the figures
that users notice."""
