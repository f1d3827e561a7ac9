"""Adapter kinds in Lua files, and the bundled kinds.

Read `definition` (a kind's file), `section` (a section of that kind), and `host` (the worker that runs the file).
Next, read `adapter`, which calls `functions` and publishes the devices that `reader` finds in their results. `calls`
handles the requests of a running function to the hub, with `web_request`, `origins`, `connection`, `kept_texts`, and
`libraries`. `recorder` records a section for `lares try-adapter`. `adapters/redaction` removes secrets.
"""
