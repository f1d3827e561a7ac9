"""HTTP on Sanic: the README.md in this folder lists each internal name that is used, the reason, and its test."""
