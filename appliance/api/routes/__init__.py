"""One module per resource: its rows of the route table, and the functions that answer them."""
