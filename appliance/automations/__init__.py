"""Automations: what people have written in Lua runs when something happens.

In the order in which to read: `fields`, `triggers/`, and `conditions/` read the files into values, `definition` is
one file. `engine` finds the triggers of an event; `active`, `schedule`, and `waits` fire later what is due. `decide`
judges: switch, brake, conditions, `policy`, mode. `states`, `variables`, `timers`, and `change_times` outlive
restarts. `ctx` has the calls of Lua, `names` warns of unknown names, `automations` puts all together.
"""
