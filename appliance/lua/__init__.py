"""Lua files: text, folders, catalogs, and their executions in worker processes.

Read `source`, `folder`, `lua_catalog`, `modes`, `executor`, `execution`, `worker_pool`, `worker`, `process`.
"""
