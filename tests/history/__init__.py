"""What the hub remembers."""
