"""Automations: what people have written in Lua runs when something happens.

Read in this order: `fields`, `triggers/`, and `conditions/` read the files into values, `definition` is
one file. `engine` finds the triggers of an event; `active`, `schedule`, and `waits` fire due triggers later. `decide`
judges: switch, brake, conditions, `policy`, mode. `states`, `variables`, `timers`, and `change_times` outlive
restarts. `ctx` has the calls of Lua, `names` warns of unknown names, `automations` puts all together.
"""
