"""Scenarios of a hub in a box. Each file prepares the box, and checks it in its first run and after a restart."""
