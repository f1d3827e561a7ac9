"""Adapter kinds in Lua files, and the bundled kinds.

Read `definition` (a kind's file), `section` (a section of that kind), and `host` (the worker that runs the file).
Next, read `adapter`, which calls `functions` and publishes the devices that `device_reader` finds in the results.
`ctx` uses `web_request`, `origins`, `push_connection`, `kept_texts`, `json_and_xml`, and `crypto` for the requests of
a running function. `section_recorder` records a section for `lares try-adapter`, and `replay` replays the recording.
`adapters/redaction` removes secrets.
"""
