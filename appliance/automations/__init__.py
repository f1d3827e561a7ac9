"""Automations: Lua files of the home that run when something happens.

Read in this order: `fields`, `triggers/`, and `conditions/` parse the parts of a file, and `definition` parses a
whole file. `engine` finds the triggers that match an event; `active`, `trigger_schedules`, `schedule`, and `waits`
fire triggers later. `decider` decides: switch, brake, conditions, `policy`, mode. `states`, `variables`, `timers`,
and `change_times` outlive restarts; `old_formats` converts data of version 0.1. `ctx` has the methods that Lua calls,
and `ctx_arguments` checks their arguments. `names` and `call_checks` warn about unknown names and wrong literals.
`automations` combines everything.
"""
