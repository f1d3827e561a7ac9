"""The dashboard: its files as served by the hub, and its page in use."""
