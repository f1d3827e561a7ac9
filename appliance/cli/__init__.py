"""The command line. Each command has a module with its name.

`main` parses the arguments. `process` contains the hub process, `simulation` the simulated home, and `homeassistant`
the import. Commands share the other modules.
"""
