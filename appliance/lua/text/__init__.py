"""The text of a Lua file, and searches in this text. Nothing here runs Lua.

- `source` contains the text, `tokens` splits it into tokens.
- `called_names` and `literal_calls` find calls, and `undefined_names` finds unknown globals and methods.
- `hints` adds a hint to the error of a frequent mistake.
"""
