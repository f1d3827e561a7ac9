"""Matter devices, through a controller server on the same box."""
