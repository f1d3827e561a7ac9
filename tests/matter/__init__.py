"""A real controller server and real virtual devices, in their own network namespace."""
