"""Reads Lua files, loads them into catalogs, and runs them in worker processes.

Read `source`, `folder`, `catalog`, `reload`, `scripts`, `executable_files`, `modes`, `executor`, `trace`,
`unfinished_executions`, `lua_run`, `ctx_calls`, `failed_calls`, `context`, `run_limits`, `run_times`, `worker_pool`,
`stuck_files`, `worker`, `worker_process`, `failures`, and `hints`, in this order.
`kind_files` and `kind_catalog` load the adapter kinds in Lua.
`tokens`, `called_names`, `literal_calls`, and `undefined_names` search the text of files.
"""
