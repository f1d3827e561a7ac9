"""The dashboard: its files as the hub serves them, and its page as people use it."""
