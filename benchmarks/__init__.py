"""What is measured: each file a measure, run in a process of its own beside its limit; RESULTS.md is the table."""
