"""The command line. The module of each command has the command's name.

`main` parses the arguments. `process` contains the hub process, `simulation` the simulated home, and `homeassistant`
the import. All other modules are parts of one or more commands.
"""
