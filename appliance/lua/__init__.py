"""Reads Lua files, loads them into catalogs, and runs them in worker processes.

Read `source`, `folder`, `catalog`, `scripts`, `executable_files`, `modes`, `executor`, `lua_execution`,
`execution_times`, `worker_pool`, `worker`, and `process`, in this order.
"""
