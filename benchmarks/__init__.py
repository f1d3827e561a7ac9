"""The measured promises, one file a promise. `python -m benchmarks` prints the table."""
