"""Lua files: text, folders, catalogs, and their executions in worker processes.

Read `source`, `folder`, `catalog`, `scripts`, `executable_files`, `modes`, `executor`, `execution`, `worker_pool`,
`worker`, `process`.
"""
