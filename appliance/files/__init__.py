"""The files of the home over HTTP, for editors.

Read `home_files` (list, read, save, delete, versions), then `file_checks` (faults and warnings of a text), and
`toml_secrets` (how secrets of the configuration stay hidden).
"""
