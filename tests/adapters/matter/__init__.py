"""The adapter for Matter controller servers."""
