"""Benchmarks, called measures. Each file is one measure, which runs in a separate process. RESULTS.md contains the
figures that users notice."""
