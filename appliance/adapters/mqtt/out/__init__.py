"""Publishes the hub's devices, scenes, and automations on a broker, in Home Assistant's discovery format.

Read in this order: `section_publishers` (starts the publishers), `home_access` (the interface to the hub),
`hub_publisher` (the work of one connection), `command_queues`, `topics`, `published_device`, `discovery_payloads` and
`components` (the announcements), and `withdrawal` (deletes old messages after a change of the settings).
"""
