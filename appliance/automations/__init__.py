"""Automations: Lua of the home that runs when something happens.

Read in this order: `fields`, `triggers/`, and `conditions/` read the files into values, `definition` is
one file. `engine` finds the triggers of an event; `active`, `schedule`, and `waits` fire due triggers later. `decide`
judges: switch, brake, conditions, `policy`, mode. `states`, `variables`, `timers`, and `change_times` outlive
restarts; `old_formats` converts data of version 0.1. `ctx` has the calls of Lua, `names` and `call_checks` warn of
unknown names and wrong literals, `automations` puts all together.
"""
