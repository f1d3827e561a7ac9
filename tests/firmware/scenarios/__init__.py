"""What a hub in a box must do: each file prepares the box, looks when it first runs, and after a restart."""
