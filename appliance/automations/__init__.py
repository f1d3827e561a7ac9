"""Automations: Lua files that run when a trigger matches.

Read in this order:

- `field_checks`, `requirement`, `triggers/`, and `conditions/` parse the parts of a file; `definition` parses a whole
  file. `stated_fields` converts a part back to its fields.
- `engine` and `trigger_index` find the triggers that match an event.
- `active_triggers`, `trigger_schedules`, and `waits` fire triggers at a later time. They use the scheduler in
  `schedule/`. `due_times` lists the times for the API.
- `decider` checks the switch, the `brake`, the conditions, and the `policy`.
- `environment` contains the parts of the hub that automations need.
- `automation_states`, `wait_writes`, `variables`, `timers`, and `change_times` store data across restarts;
  `stored_hashes` computes the keys in this data, and `old_formats` converts data of earlier versions.
- `ctx` implements the methods that Lua calls; `ctx_arguments` checks their arguments.
- `names/` warns about unknown names and wrong literals.
- `automations` combines these parts; `safe_mode` pauses them after crashes.
"""
