"""The command line. Each command has a module with its name.

`main` parses the arguments. `process` is the hub process, `simulation` the simulated home, and `homeassistant` the
import. The other modules are shared by several commands.
"""
