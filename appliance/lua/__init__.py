"""Reads Lua files, loads them into catalogs, and runs them in worker processes.

Read in this order:

- `text/` contains the text of a file, and searches this text.
- `files/` reads folders of files, and loads them into catalogs.
- `running/` executes the files in worker processes.
- `executable_files` is the common base of scenes and automations: a catalog and its executor.
- `kind_catalog` contains the loaded adapter kinds, and calls their functions in a worker.
"""
