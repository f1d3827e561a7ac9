"""TVs that speak Roku's External Control Protocol."""
