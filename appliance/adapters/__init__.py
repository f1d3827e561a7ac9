"""Vendors' devices: one adapter per configured section, and the dispatcher that sends them commands.

Read `base` (the contract of an adapter), `polling` with `done` and `device_http`, and one vendor, such as `wled`.
Then follow a command through `dispatch` and `adapter_runner`, and its report back through `publisher`. `kind` and
`kinds` are the catalog; `adapter_start` starts the sections.
"""
