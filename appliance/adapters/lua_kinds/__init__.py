"""Adapter kinds in Lua files, and the bundled kinds.

Read `definition` (a kind's file) with `settings` (the settings that a file defines), `section` (a section of that
kind), and `host` (the interface of the worker that runs the file). Next, read `adapter` and `functions`.

A poll takes this path: 1. `LuaAdapter.poll` calls `KindFunctions.call(["poll"])`. 2. `KindFunctions` adds the
section's settings and memory, and calls the host. 3. `lua/kind_catalog` passes the call to a worker, which runs the
function. 4. Each `ctx:http` of the function returns to the hub as `KindCtx.call`, and `Origins.exchange` sends the
request. 5. `KindFunctions.call` returns the results. 6. `DeviceReader` checks the devices in the results, with
`command_reader` for their commands. 7. The base class `PollingAdapter` publishes the report.

`ctx` uses `web_request`, `origins`, `push_connection`, `kept_texts`, `json_and_xml`, and `crypto`.
`section_recorder` records a section for `lares try-adapter`, and `replay` replays the recording.
`adapters/redaction` removes secrets.
"""
