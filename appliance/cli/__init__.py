"""The command line. The module of each command has the command's name.

`main` parses the arguments. `process` contains the hub process, `simulation` the simulated home, and `homeassistant`
the import. The other modules are parts of one or more commands:

- start: `arguments`, `late_modules`, `single_file`, `initial_config`, `machine_zone`
- users, paths, and keys: `owner`, `paths`, `named_files`, `keyring`
- access to the running hub, or to its document: `hub_client`
- backup and restore: `archive`, `json_members`, `config_swap`, `record_checks`, `configured_master_key`
- checks and Lua: `examination`, `lua_pool`, `lua_form`
- output: `terminal`, `log_output`, `exit_codes`
"""
