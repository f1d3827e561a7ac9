"""The measures: each file is one, run in its own process; RESULTS.md has the figures that users notice."""
