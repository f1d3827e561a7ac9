"""A real controller server and real virtual devices, in a namespace of their own."""
