"""What is measured: each file a measure, run in a process of its own; RESULTS.md has what a user feels."""
