"""Tasks of a hub in a box: each file prepares the box, and checks it in its first run and after a restart."""
