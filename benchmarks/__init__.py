"""The measured promises: each file a measure, run in a process of its own beside its limit; see `NOTES.md`."""
