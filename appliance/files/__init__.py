"""Access to the home's files over HTTP, for editors.

Read `file_locations` (paths and kinds), and `home_files` (list, read, save, delete, versions). Next, read
`file_checks` (faults and warnings of a text), and `secret_settings` with `toml_secrets`, which hide the
configuration's secrets.

`sections` changes the adapter sections of the configuration with `toml_edit` and `toml_scan`; `section_trial` tries a
section first. `recipes` and `recipe_fields` fill in forms. `kind_forms` and `lua_library` help editors.
"""
