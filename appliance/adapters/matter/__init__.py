"""What speaks Matter, through a controller server that runs beside the hub."""
