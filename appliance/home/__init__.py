"""The home as data: devices, rooms, groups, changes, and events. No function of this package blocks.

Read `model`, `values`, `capabilities`, and `commands`, then `layout`, `observations`, and `registry`, which publishes
`events` on the `bus`.
"""
