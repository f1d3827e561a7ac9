"""The store, proved."""
