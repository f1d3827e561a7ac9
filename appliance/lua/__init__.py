"""One execution of a Lua file: its sandbox, its limits, and what it may ask of the home."""
