"""Connects vendors' devices. Each configured section has an adapter, and a dispatcher sends commands to the adapters.

Read `base` (the contract of an adapter), `polling` with `confirmation` and `device_http`, and one vendor, such as
`wled`. Next, follow a command through `dispatch`, `address_gates`, and `adapter_runner`, and the device's report back
through `publisher` (with `poll_reading`). `health_publisher` reports outages and failures. `kind` and `kinds` are the
catalog of adapters. `running_adapters` starts and stops the adapter of each section.

`device_json` and `device_xml` parse answers, `replies` matches replies to requests, and `reconnection` opens a
connection again. `access_settings` and `address_hints` check the settings of a section, and `secret_files` and `tls`
read its files. `redaction` removes secrets. Vendors are packages with a `kind.py`, or files in `lua_kinds`.
`network_search` finds devices in the network. `simulated_device` is the base of simulators, and `trial_home` is the
home of an adapter on trial. `late_session` opens the HTTP session at its first use. `influx_post` sends the history
to InfluxDB. `notification` parses messages to people. `answer_text` shortens the texts of servers for error messages.
`lua_calls` is the interface for the requests of Lua.
"""
