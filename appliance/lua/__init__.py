"""Reads Lua files, loads them into catalogs, and runs them in worker processes.

Read `source`, `folder`, `catalog`, `scripts`, `executable_files`, `modes`, `executor`, `lua_run`, `ctx_calls`,
`context`, `run_times`, `worker_pool`, `worker`, `worker_process`, `failures`, and `hints`, in this order.
`kind_files` and `kind_catalog` load the adapter kinds in Lua.
`tokens`, `called_names`, `literal_calls`, and `undefined_names` search the text of files.
"""
