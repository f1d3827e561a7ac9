"""Vendors' devices: one adapter for each configured section, and the dispatcher that sends commands to adapters.

Read `base` (the contract of an adapter), `polling` with `done` and `device_http`, and one vendor, such as `wled`.
Then follow a command through `dispatch` and `adapter_runner`, and the device's report back through `publisher`.
`kind` and `kinds` are the catalog of adapters. `adapter_start` starts the adapter of each section.
"""
