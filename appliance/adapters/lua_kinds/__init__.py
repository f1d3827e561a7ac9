"""Adapter kinds in Lua files, and the bundled kinds.

Read `definition` (a kind's file) with `settings` (the settings that a file defines), `section` (a section of that
kind), and `host` (the interface of the worker that runs the file). Next, read `adapter`, `functions`, and
`device_reader` with `command_reader` (the devices in a function's result, and their commands).

A section takes this path: 1. `config._read_adapter` creates a `LuaSection`. 2. `KindFiles.read`
(`lua/files/kind_files`) loads the kind, and `read_section` checks the section. 3. `KindCatalog._accept`
(`lua/kind_catalog`) stores both. 4. `kinds.kind_of` chooses `LUA_KIND`, whose `adapter.build` calls `KindHost.find`,
and creates a `LuaAdapter`.

A poll takes this path: 1. `LuaAdapter.poll` calls `KindFunctions.call(["poll"])`. 2. `KindFunctions` adds the
section's settings and memory, and calls the host. 3. `lua/kind_catalog` passes the call to a worker, which runs the
function. `lua_worker/prelude/kind.lua` defines `ctx:fetch`, `measure`, `part`, and the other functions for kinds.
4. Each `ctx:http` of the function returns to the hub as `KindCtx.call`, and `Origins.exchange` sends the request. 5.
`KindFunctions.call` returns the results. 6. `DeviceReader` checks the devices in the results. 7. The base class
`PollingAdapter` publishes the report.

A command takes this path: 1. `LuaAdapter.command` calls `KindFunctions.call(["command"])`, which continues like a
poll. 2. If the function returns true, the command has succeeded. If it returns a device, this device must show the
result. If it returns nil, `PollingAdapter.confirm` polls until the device reports the result.

`access` has the credentials and secrets of a section. `ctx` uses `web_request`, `origins`, `push_connection`,
`kept_texts`, `json_and_xml`, and `crypto`. `section_recorder` records a section for `lares try-adapter` in the format
of `recording`, and `replay` replays the recording. `adapters/redaction` removes secrets.
"""
