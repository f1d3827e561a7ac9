"""A real controller server and real virtual devices, in a separate network namespace."""
