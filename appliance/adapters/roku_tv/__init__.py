"""TVs with Roku's External Control Protocol."""
