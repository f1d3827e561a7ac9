"""HTTP on Sanic. README.md in this folder lists each internal name of Sanic that is used, with the reason and the
test."""
