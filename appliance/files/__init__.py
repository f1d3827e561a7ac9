"""The files of the home over HTTP, for editors.

Read `file_places` (paths and kinds), `home_files` (list, read, save, delete, versions), then `file_checks` (faults
and warnings of a text), and `secret_settings` with `toml_secrets`, which hide the secrets of the configuration.
"""
