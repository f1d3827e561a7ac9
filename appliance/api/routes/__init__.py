"""One module per resource: its routes, and the handlers of their requests."""
