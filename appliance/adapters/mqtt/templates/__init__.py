"""Templates as announcers write them: Jinja's syntax, evaluated within bounds, with no Python object in reach."""
