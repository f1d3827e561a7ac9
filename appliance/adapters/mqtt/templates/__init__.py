"""Templates in announcements: Jinja's syntax, evaluated within limits, without access to Python objects."""
