"""The home as data: devices, rooms, groups, their changes and events. Plain functions that never block.

Read `model`, `values`, `capabilities`, and `commands`, then `layout`, `observations`, and `registry`, which publishes
`events` on the `bus`.
"""
