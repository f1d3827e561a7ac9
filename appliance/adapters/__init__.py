"""The outer wall: vendors' devices and the way to them."""
