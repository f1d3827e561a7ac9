"""Adapter kinds in Lua files, and the bundled kinds.

Read `definition` (a kind's file), `section` (a section of that kind), and `host` (the worker that runs the file).
Next, read `adapter`, which calls `functions` and publishes the devices that `reader` finds in the results. `calls`
uses `web_request`, `origins`, `connection`, `kept_texts`, and `libraries` to handle what a running function requests
from the hub. `recorder` records a section for `lares try-adapter`. `adapters/redaction` removes secrets.
"""
