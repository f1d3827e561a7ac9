"""The home as data: devices, rooms, groups, changes, and events. No function of this package blocks.

Read `model`, `values`, `capabilities`, `commands`, and `command_specs`, then `layout` and `observations`, then
`registry`, which publishes `events` on the `bus`.
"""
