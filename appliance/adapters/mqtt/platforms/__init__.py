"""Components of Home Assistant's discovery format, one file for each component or group.

Read `entity` first, the base of all components, then `intent`, `availability`, `payloads`, and `numbers`, which
`entity` uses, then any component. `switch`, `regulated`, `command_words`, `settable_values`, and `event` begin with
the base class of several components. `light` is the base of `light_schemas`.
"""
