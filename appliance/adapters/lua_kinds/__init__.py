"""Adapter kinds in Lua files, and the bundled kinds.

Read `kind` (a file), `section` (its configuration), and `host` (its worker). Then read `adapter`, which calls
`functions` and publishes the devices that `reader` finds in their results. `calls` handles the requests of a running
function to the hub, with `web_request`, `connection`, `kept_texts`, and `libraries`. `redaction` hides secrets;
`recorder` records a section for `lares try-adapter`.
"""
