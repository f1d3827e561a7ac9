"""What is measured: each file a measure, run in a process of its own next to its limit; RESULTS.md is the table."""
