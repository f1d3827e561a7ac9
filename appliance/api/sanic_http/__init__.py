"""HTTP on Sanic: README.md in this folder lists each internal name, its reason, and its test."""
