"""One module a resource: its rows of the route table and what answers them."""
