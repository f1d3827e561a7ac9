"""Scenarios of a hub in a box. Each file prepares the box, and checks it during the first run and after a restart."""
