"""Folders of Lua files, and the definitions in them.

- `folder` reads the files of a folder, and finds the modules for `require`. `scripts` checks these modules.
- `catalog` contains the loaded definitions of a folder of scenes or automations.
- `kind_files` reads the files of adapter kinds: the home's files and the bundled files.
- `reload` loads changed files, and reports the result.
"""
