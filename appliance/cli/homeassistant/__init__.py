"""Imports a Home Assistant folder: areas, names, and automations as Lua.

Read in this order: `installation` (the whole folder), `entities` (entity → device and attribute), `templates`
(Jinja → Lua), `conditions`, `triggers`, `actions`, `waits`, and `automation`, which writes one file. `scripts` and
`scenes` use the same parts. `records` and `config_files` write the results.
"""
