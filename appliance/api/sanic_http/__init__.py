"""What of Sanic is replaced, and what is relied on: README.md in this folder lists each name, why, and its test."""
