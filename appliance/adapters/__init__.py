"""Connects vendors' devices. Each configured section has an adapter, and a dispatcher sends commands to the adapters.

Read `base` (the contract of an adapter), `polling` with `confirmation` and `device_http`, and one vendor, such as
`wled`. Next, follow a command through `dispatch` and `adapter_runner`, and the device's report back through
`publisher`. `kind` and `kinds` are the catalog of adapters. `adapter_start` starts the adapter of each section.
"""
