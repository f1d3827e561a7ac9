"""LED strips that run WLED."""
