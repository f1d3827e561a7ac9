"""Components of Home Assistant's discovery format, one file for each group.

Read `entity` first, the base of all components, then `intent`, `availability`, `payloads`, and `numbers`, which it
uses, then `table` and any other file. The files `inputs`, `on_off`,
`climate`, `robots`, and `event` begin with the base class of their components. `light` is the base of
`light_schemas`.
"""
