"""Templates as announcers write them: a bounded subset of Jinja that never touches a Python object."""
